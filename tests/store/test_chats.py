"""Chain nodes, chats, leases and tokens, on both engines."""

from __future__ import annotations

import asyncio

from support.stores import Place, chat, node, session, store_fails

from toolglot.store.interface import UNANSWERED, ChainNode, FoundNode


async def test_nodes_come_in_the_order_of_the_keys_the_newest_first(place: Place) -> None:
    async with place.opened() as store:
        await store.add_session(session("s1"), [node(b"a", "s1"), node(b"b", "s1")])
        await store.add_session(session("s2"), [node(b"b", "s2"), node(b"a", "s2")])
        await store.add_nodes([node(b"a", "s1")])
        token = await store.add_chat(chat(), "me", 60)
        last = node(b"a", "s1", chat="c1", message="m", context=b"ctx", answer=b"ans", size=7)
        assert await store.commit_turn([last], "c1", "m", token)
        found = await store.find_nodes([b"no", b"b", b"a", b"b"])
        assert [(one.node.key, one.node.session, one.node.chat) for one in found] == [
            (b"b", "s2", ""),
            (b"b", "s1", ""),
            (b"a", "s1", "c1"),
            (b"a", "s2", ""),
            (b"a", "s1", ""),
        ]
        assert found[2].node == last
        assert found[2].is_head
        assert found[2].chat is not None
        assert (found[2].chat.id, found[2].chat.owner, found[2].chat.head) == ("c1", b"anna", "m")
        assert not found[3].is_head
        assert await store.find_nodes([]) == []


async def test_an_unknown_head_is_the_message_of_no_node() -> None:
    position = ChainNode(key=b"k", session="s1", chat="c1", message="")
    assert not FoundNode(node=position, chat=chat(head="")).is_head


async def test_a_node_is_claimed_once(place: Place) -> None:
    async with place.opened() as store:
        await store.add_session(session(), [node(b"k"), node(b"known", answer=b"x")])
        assert await store.claim_node(node(b"k"), b"one")
        assert await store.claim_node(node(b"k"), b"one")
        assert not await store.claim_node(node(b"k"), b"two")
        assert not await store.claim_node(node(b"known"), b"two")
        assert not await store.claim_node(node(b"k", "s2"), b"one")
        assert not await store.claim_node(node(b"k", chat="c9"), b"one")
        await store.add_nodes([node(b"k", answer=b"two")])
        assert [found.node.answer for found in await store.find_nodes([b"k"])] == [b"two"]


async def test_the_newest_of_many_equal_nodes_are_found(place: Place) -> None:
    async with place.opened() as store:
        names = [f"s{at:03}" for at in range(40)]
        for name in names:
            await store.add_session(session(name), [node(b"k", name), node(name.encode(), name)])
        found = await store.find_nodes([b"none", *(name.encode() for name in names[:100]), b"k"])
        assert [one.node.session for one in found] == [*names, *reversed(names[-16:])]


async def test_nodes_of_failed_requests_are_found_alone(place: Place) -> None:
    async with place.opened() as store:
        answers = {"s1": UNANSWERED, "s2": b"", "s3": UNANSWERED, "s4": b"x"}
        for name, answer in answers.items():
            await store.add_session(session(name), [node(b"k", name, answer=answer), node(b"m", name)])
        assert [one.node.session for one in await store.find_nodes([], [b"none", b"k", b"m"])] == ["s3", "s1"]
        both = await store.find_nodes([b"m"], [b"k"])
        assert [(one.node.key, one.node.session) for one in both] == [
            *((b"m", name) for name in reversed(answers)),
            (b"k", "s3"),
            (b"k", "s1"),
        ]


async def test_one_of_many_claims_wins(place: Place) -> None:
    async with place.opened() as one, place.opened() as two:
        await one.add_session(session(), [node(b"k")])
        answers = [b"%d" % at for at in range(20)]
        won = await asyncio.gather(*((one, two)[at % 2].claim_node(node(b"k"), answers[at]) for at in range(20)))
        [winner] = [answer for answer, claimed in zip(answers, won, strict=True) if claimed]
        assert [found.node.answer for found in await two.find_nodes([b"k"])] == [winner]


async def test_a_lease_excludes_all_others(place: Place) -> None:
    async with place.opened() as one, place.opened() as two:
        await one.add_session(session(), [])
        token = await one.add_chat(chat(), "one", 60)
        assert await two.acquire_lease("c1", "two", 60) is None
        assert await one.acquire_lease("c1", "one", 60) is None
        assert await two.acquire_lease("no such chat", "two", 60) is None
        assert await one.renew_lease("c1", token, 60)
        assert await one.interrupt_chat("c1", token)
        await one.release_lease("c1", token)
        second = await two.acquire_lease("c1", "two", 60)
        assert second is not None
        assert second > token


async def test_a_stale_token_can_do_nothing(place: Place) -> None:
    async with place.opened() as store:
        await store.add_session(session(), [])
        first = await store.add_chat(chat(head="start"), "one", 0)
        second = await store.acquire_lease("c1", "two", 60)
        assert second is not None
        for stale in (first, second + 1, 0, -1):
            await store.release_lease("c1", stale)
            assert not await store.renew_lease("c1", stale, 60)
            assert not await store.interrupt_chat("c1", stale)
            assert not await store.commit_turn([node(b"k", chat="c1", message="m")], "c1", "m", stale)
        assert await store.acquire_lease("c1", "three", 60) is None
        assert await store.find_nodes([b"k"]) == []
        assert await store.commit_turn([node(b"k", chat="c1", message="m")], "c1", "m", second)
        await store.release_lease("c1", second)
        assert not await store.interrupt_chat("c1", second)
        assert not await store.renew_lease("c1", second, 60)
        assert not await store.commit_turn([node(b"k", chat="c1", message="n")], "c1", "n", second)
        [found] = await store.find_nodes([b"k"])
        assert found.is_head


async def test_a_lease_expires(place: Place) -> None:
    async with place.opened() as store:
        await store.add_session(session(), [])
        first = await store.add_chat(chat(), "one", 0)
        assert not await store.interrupt_chat("c1", first)
        assert await store.renew_lease("c1", first, 60)
        assert await store.acquire_lease("c1", "two", 60) is None
        assert await store.interrupt_chat("c1", first)
        assert await store.renew_lease("c1", first, 0)
        assert await store.commit_turn([], "c1", "m", first), "expired, but no other has the lease"
        second = await store.acquire_lease("c1", "two", 0.2)
        assert second is not None
        assert second > first
        assert await store.acquire_lease("c1", "three", 0.2) is None
        await asyncio.sleep(0.25)
        third = await store.acquire_lease("c1", "three", 60)
        assert third is not None
        assert third > second


async def test_an_interrupted_chat_has_no_head(place: Place) -> None:
    async with place.opened() as store:
        await store.add_session(session(), [])
        token = await store.add_chat(chat(), "one", 60)
        assert await store.commit_turn([node(b"k", chat="c1", message="m")], "c1", "m", token)
        assert await store.interrupt_chat("c1", token)
        [found] = await store.find_nodes([b"k"])
        assert found.chat is not None
        assert (found.chat.head, found.is_head) == ("", False)


async def test_a_deleted_chat_is_never_continued(place: Place) -> None:
    async with place.opened() as store:
        await store.add_session(session(), [node(b"k")])
        for name in ("c1", "c2"):
            token = await store.add_chat(chat(name), "one", 60)
            assert await store.commit_turn([node(b"k", chat=name, message="m")], name, "m", token)
        await store.delete_chat("c1")
        await store.delete_chat("c1")
        assert [found.node.chat for found in await store.find_nodes([b"k"])] == ["c2", ""]
        assert not await store.commit_turn([node(b"x", chat="c1", message="n")], "c1", "n", 1)
        assert not await store.interrupt_chat("c1", 1)
        assert not await store.renew_lease("c1", 1, 60)
        await store.release_lease("c1", 1)
        assert await store.find_nodes([b"x"]) == []


async def test_unused_chats_expire(place: Place) -> None:
    now = place.now()
    async with place.opened() as store:
        await store.add_session(session(), [])
        for at in range(5):
            await store.add_chat(chat(f"c{at}", used=10.0 + at), "one", 0)
            await store.add_nodes([node(b"k", chat=f"c{at}", message="m")])
        await store.add_chat(chat("leased", used=1.0), "one", 60)
        await store.add_chat(chat("now"), "one", 0)
        assert [found.id for found in await store.expire_chats(12.5, 2)] == ["c0", "c1"]
        assert [found.id for found in await store.expire_chats(12.5)] == ["c2"]
        assert await store.acquire_lease("c3", "two", 0) is not None
        assert [found.id for found in await store.expire_chats(now - 60)] == ["c4"]
        assert [found.node.chat for found in await store.find_nodes([b"k"])] == ["c3"]


async def test_a_failed_commit_changes_nothing(place: Place) -> None:
    async with place.opened() as store:
        await store.add_session(session(), [])
        token = await store.add_chat(chat(head="m0"), "one", 60)
        good, bad = node(b"a", chat="c1", message="m1"), node(b"b", "no such session", chat="c1", message="m1")
        with store_fails("belongs to one that does not exist"):
            await store.commit_turn([good, bad], "c1", "m1", token)
        assert await store.find_nodes([b"a", b"b"]) == []
        assert await store.commit_turn([good], "c1", "m1", token)
        with store_fails("exists already"):
            await store.add_chat(chat(), "one", 60)


async def test_only_one_of_many_gets_the_lease(place: Place) -> None:
    async with place.opened() as one, place.opened() as two:
        await one.add_session(session(), [])
        token: int | None = await one.add_chat(chat(), "start", 60)
        assert token is not None
        for _ in range(5):
            await one.release_lease("c1", token)
            tried = await asyncio.gather(*((one, two)[at % 2].acquire_lease("c1", f"{at}", 60) for at in range(20)))
            [higher] = [got for got in tried if got is not None]
            assert higher == token + 1
            token = higher
