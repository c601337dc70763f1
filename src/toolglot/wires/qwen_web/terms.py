"""What an operator accepts with ``accept_terms = true``. docs/QWEN_WEB.md quotes it."""

from __future__ import annotations

from typing import Final

TERMS: Final = """\
The wire qwen_web talks to the private API of a web page. Please read this before you use it:
- The API is not documented and may change or stop on any day.
- Automated use is probably not allowed by the terms of service of the site. Read them: the account may be blocked.
- The token gives full access to the account, private chats included. Keep it in an environment variable or in a file
  that only you can read (mode 0600). toolglot never stores or logs it, and takes nothing out of a browser.
- Prompts and answers become part of the account's chat history. Chats can be deleted after use.
- Use one account, for yourself, at low volume. toolglot does not rotate accounts, solve CAPTCHAs, imitate a browser or
  make up its security headers. When the site asks for a check by a person, toolglot stops asking it.
- For anything else use Alibaba Cloud Model Studio (DashScope), the documented API for the same models."""
