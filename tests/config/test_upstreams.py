"""Settings of upstreams: terms to accept, secrets in files and variables, dialects and modes that cannot work."""

from __future__ import annotations

from pathlib import Path

import pytest

from toolglot.config import Secret, Settings, Upstream, load
from toolglot.core.errors import UsageError
from toolglot.wires.qwen_web.terms import TERMS

TOKEN, COOKIES = "tok-4711-secret", "token=cook-0815-secret; cna=A%2BB-long-value"
WEB = '[[upstream]]\nname = "qwen"\nwire = "qwen_web"\nbase_url = "https://chat.qwen.ai"\n'
ACCEPTED = WEB + "accept_terms = true\n"
DOCS = Path(__file__).resolve().parents[2] / "docs/QWEN_WEB.md"


@pytest.fixture
def write(tmp_path: Path) -> Path:
    return tmp_path / "toolglot.toml"


def load_text(path: Path, text: str, **environ: str) -> Settings:
    path.write_text(text, "utf-8")
    return load({}, environ, path)


def refuse(path: Path, text: str, **environ: str) -> str:
    with pytest.raises(UsageError) as caught:
        load_text(path, text, **environ)
    return caught.value.message


# -- terms -------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("answer", ["", "accept_terms = false\n"])
def test_the_start_is_refused_until_the_terms_are_accepted(write: Path, answer: str) -> None:
    message = refuse(write, WEB + answer)
    assert TERMS in message and "accept_terms = true" in message and "'qwen'" in message


def test_the_terms_are_in_the_documentation_word_by_word() -> None:
    assert TERMS in DOCS.read_text("utf-8")


def test_the_settings_of_the_documentation(write: Path) -> None:
    text = DOCS.read_text("utf-8").split("## Settings", 1)[1]
    toml = text.split("```toml\n", 1)[1].split("```", 1)[0]
    [upstream] = load_text(write, toml, QWEN_TOKEN=TOKEN, QWEN_COOKIES=COOKIES).upstreams
    assert (upstream.wire, upstream.chaining, upstream.branch_mode) == ("qwen_web", "auto", "reseed")
    assert upstream.endpoint("/api/models", "") == "https://chat.qwen.ai/api/models"
    assert (upstream.api_key, upstream.cookies) == (Secret(TOKEN), Secret(COOKIES))


@pytest.mark.parametrize(
    "line", ['chaining = "on"', 'branch_mode = "fork"', 'cookies = "no cookie"', "delete_chats = 3"]
)
def test_other_values_are_refused(write: Path, line: str) -> None:
    assert "it must be" in refuse(write, ACCEPTED + line)


# -- secrets -----------------------------------------------------------------------------------------------------------


def test_cookies_are_taken_from_the_variable_beside_the_token(write: Path) -> None:
    def cookies_of(text: str) -> Secret:
        return (
            load_text(write, ACCEPTED + text, QWEN_TOKEN=TOKEN, QWEN_COOKIES=COOKIES, MINE="a=b").upstreams[0].cookies
        )

    assert cookies_of('api_key = "env:QWEN_TOKEN"') == Secret(COOKIES)
    assert cookies_of('api_key = "env:QWEN_TOKEN"\ncookies = "env:MINE"') == Secret("a=b")
    assert not cookies_of('api_key = "other-key"'), "the file does not refer to the variables"
    assert not load_text(write, ACCEPTED + 'api_key = "env:QWEN_TOKEN"', QWEN_TOKEN=TOKEN).upstreams[0].cookies


def test_only_secrets_are_read_from_files(write: Path) -> None:
    assert load_text(write, 'server.default_model = "file:model"').server.default_model == "file:model"


def test_every_secret_of_an_upstream_is_redacted() -> None:
    upstream = Upstream(
        base_url="https://host",
        api_key=Secret(TOKEN),
        cookies=Secret(COOKIES),
        headers={"cookie": "sid=head-2342-sec; x=1"},
    )
    for text in (TOKEN, COOKIES, "cook-0815-secret", "A%2BB-long-value", "A+B-long-value", "head-2342-sec"):
        assert text in upstream.secrets
    assert not any(text in repr(upstream) for text in (TOKEN, COOKIES, "cook-0815-secret"))
    assert all(upstream.secrets)


def test_cookies_are_a_header_and_own_headers_win() -> None:
    upstream = Upstream(base_url="https://host", cookies=Secret("a=b"))
    assert upstream.own_headers == {"Cookie": "a=b"}
    assert Upstream(base_url="https://host", headers={"X-One": "1"}).own_headers == {"X-One": "1"}


# -- modes and dialects ------------------------------------------------------------------------------------------------


def test_a_qwen_model_gets_another_dialect_here(write: Path) -> None:
    other = '[[upstream]]\nname = "local"\nbase_url = "http://host"\n[[model]]\nname = "local-*"\nupstream = "local"\nmodel = "*"\n'
    settings = load_text(write, ACCEPTED + other + '[[model]]\nname = "*"\nupstream = "qwen"\n')
    for name in ("qwen3-coder-plus", "qwen3-30b-a3b", "glm-4.5"):
        assert settings.model_for(name)[0].dialect == "roo_xml"
        assert settings.model_for(f"local-{name}")[0].dialect != "roo_xml"


@pytest.mark.parametrize("dialect", ["hermes", "qwen3_coder", "qwen3-coder-plus", "shell_fence"])
def test_an_intercepted_dialect_is_refused(write: Path, dialect: str) -> None:
    model = f'[[model]]\nname = "*"\nupstream = "qwen"\ndialect = "{dialect}"\n'
    for text in (ACCEPTED + model, ACCEPTED + f'[tool_calling]\ndialect = "{dialect}"\n'):
        message = refuse(write, text)
        assert "for its own" in message and "roo_xml" in message
    own = '[[model]]\nname = "*"\nupstream = "qwen"\ndialect = "anthropic"\n'
    load_text(write, ACCEPTED + own + f'[tool_calling]\ndialect = "{dialect}"\n')


def test_native_tools_are_refused(write: Path) -> None:
    native = '[[model]]\nname = "*"\nupstream = "qwen"\nmode = "native"\n'
    for text in (ACCEPTED + native, ACCEPTED + '[tool_calling]\nmode = "native"\n'):
        assert "no native tools" in refuse(write, text)
    load_text(write, ACCEPTED + native.replace("native", "text") + '[tool_calling]\nmode = "native"\n')
