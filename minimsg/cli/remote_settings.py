"""Whom the commands that ask a server ask, and with which key; the names that SDKs read, too."""

from __future__ import annotations

from dataclasses import dataclass

from minimsg.config import option


@dataclass(frozen=True)
class RemoteSettings:
    """A server of the Messages API."""

    base_url: str = option(
        "http://127.0.0.1:8080",
        "Base URL, with or without /v1; nothing else is contacted.",
        environment=("ANTHROPIC_BASE_URL",),
    )
    api_key: str | None = option(
        None, "Key to send as x-api-key.", environment=("ANTHROPIC_API_KEY",)
    )
    auth_token: str | None = option(
        None, "Key to send as a bearer token.", environment=("ANTHROPIC_AUTH_TOKEN",)
    )

    def headers(self) -> dict[str, str]:
        """What every request is sent with."""
        key = {"x-api-key": self.api_key} if self.api_key else {}
        token = {"authorization": f"Bearer {self.auth_token}"} if self.auth_token else {}
        return {"anthropic-version": "2023-06-01"} | key | token
