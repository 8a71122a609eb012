"""Retrieve content that a prompt no longer shows, and search all messages."""

from __future__ import annotations

from typing import Any

import pytest
from django.test import override_settings

from sessions.models import AgentSession
from sessions.store.handles import handle_make
from tests.api.client import Api, code
from tests.api.talk import HANDLE, call, openai_turn, output, prompt, push, request, whole_turn
from tests.plugins.reused import reused


def shown_handles(api: Api, session: str = "s1") -> list[str]:
    return HANDLE.findall(api.get(f"sessions/{session}/prompt/").content.decode())


@reused
def handles(api: Api) -> dict[int, str]:
    """Return the handles of a compacted session by position."""
    made = api.post("sessions/", {"id": "s1", "budget": {"input_tokens": 6_000}, "policy": "masking"})
    assert made.status_code == 201
    for number in range(12):
        push(api, whole_turn(number, lines=60))
    records = api.get("sessions/s1/compactions/").json()["data"]
    edits = [
        edit
        for record in records
        for edit in api.get(f"sessions/s1/compactions/{record['number']}/").json()["edits"]
    ]
    return {edit["positions"]["first"]: edit["handle"] for edit in edits if edit["handle"]}


class TestExpanding:
    @pytest.mark.slow
    def test_each_handle_in_a_prompt_retrieves_its_content(self, api: Api, handles: dict[int, str]) -> None:
        shown = shown_handles(api)
        assert shown
        for handle in shown:
            content = api.get(f"sessions/s1/blobs/{handle}/").json()
            assert handle in handles.values()
            assert content["text"]
            assert content["characters"] == len(content["text"])

    def test_the_whole_output_is_returned_with_its_position(self, api: Api, handles: dict[int, str]) -> None:
        position = min(position for position in handles if position % 4 == 2)
        content = api.get(f"sessions/s1/blobs/{handles[position]}/").json()
        assert content["text"] == output(position // 4, 60)
        assert (content["turn"], content["position"], content["tool"]) == (
            position // 4,
            position,
            "read_file",
        )
        assert (content["lines"], content["next_offset"]) == (60, None)

    @pytest.mark.slow
    def test_parts_by_lines_and_characters_add_up(self, api: Api, handles: dict[int, str]) -> None:
        address = f"sessions/s1/blobs/{next(iter(handles.values()))}/"
        whole = api.get(address).json()["text"]
        for unit, limit in (("lines", 7), ("characters", 100)):
            text, offset = "", 0
            while offset is not None:
                piece = api.get(f"{address}?unit={unit}&limit={limit}&offset={offset}").json()
                text, offset = text + piece["text"], piece["next_offset"]
            assert text == whole
        assert api.get(f"{address}?offset=100000").json()["text"] == ""

    def test_grep_returns_matching_lines_with_numbers(self, api: Api, handles: dict[int, str]) -> None:
        position = min(position for position in handles if position % 4 == 2)
        address = f"sessions/s1/blobs/{handles[position]}/"
        found = api.get(f"{address}?grep=_7\\b&context=1").json()
        assert found["match_count"] == 1
        assert [(line["line"], line["match"]) for line in found["matches"]] == [
            (7, False),
            (8, True),
            (9, False),
        ]
        assert api.get(f"{address}?grep=nowhere").json()["matches"] == []

    @pytest.mark.parametrize(
        "query",
        [
            "grep=(",
            "grep=(%3F%3Da)",
            "grep=a{9999}",
            "grep=%5C1",
            "offset=-1",
            "limit=0",
            "unit=words",
            "grep=a&context=21",
            "context=-1",
            "offset=9999999999999",
        ],
    )
    def test_an_invalid_query_is_rejected(self, api: Api, handles: dict[int, str], query: str) -> None:
        response = api.get(f"sessions/s1/blobs/{next(iter(handles.values()))}/?{query}")
        assert (response.status_code, code(response)) == (400, "invalid_field")

    def test_an_invalid_pattern_is_explained(self, api: Api, handles: dict[int, str]) -> None:
        response = api.get(f"sessions/s1/blobs/{next(iter(handles.values()))}/?grep=(")
        assert response.json()["error"]["message"] == "`grep` is not a valid regular expression: missing ): ("

    def test_a_pathological_pattern_is_fast(self, api: Api, handles: dict[int, str]) -> None:
        address = f"sessions/s1/blobs/{next(iter(handles.values()))}/"
        assert api.get(f"{address}?grep=(.*)*(.*)*(.*)*$x").status_code == 200

    @pytest.mark.slow
    def test_content_pushed_as_openai_is_returned(self, api: Api) -> None:
        api.post(
            "sessions/",
            {"id": "o", "format": "openai", "budget": {"input_tokens": 6_000}, "policy": "masking"},
        )
        for number in range(12):
            push(api, openai_turn(number, lines=60), session="o")
        texts = [api.get(f"sessions/o/blobs/{handle}/").json()["text"] for handle in shown_handles(api, "o")]
        assert set(texts) & {output(number, 60) for number in range(12)}

    @pytest.mark.slow
    def test_a_handle_survives_compactions_and_a_revert(self, api: Api, handles: dict[int, str]) -> None:
        texts = {
            handle: api.get(f"sessions/s1/blobs/{handle}/").json()["text"] for handle in handles.values()
        }
        api.post("sessions/s1/compact/", {"policy": {"preset": "aggressive"}})
        for record in api.get("sessions/s1/compactions/").json()["data"]:
            api.post(f"sessions/s1/compactions/{record['number']}/revert/")
        for handle, text in texts.items():
            assert api.get(f"sessions/s1/blobs/{handle}/").json()["text"] == text


class TestSecrecy:
    @pytest.mark.slow
    def test_a_handle_works_only_in_its_session(
        self, api: Api, stranger_api: Api, handles: dict[int, str]
    ) -> None:
        api.post("sessions/", {"id": "s2"})
        stranger_api.post("sessions/", {"id": "s1"})
        for handle in handles.values():
            assert api.get(f"sessions/s2/blobs/{handle}/").status_code == 404
            assert stranger_api.get(f"sessions/s1/blobs/{handle}/").status_code == 404

    def test_a_handle_cannot_be_forged_without_the_server_key(
        self, api: Api, handles: dict[int, str]
    ) -> None:
        session = AgentSession.objects.get(external_id="s1")
        made = {handle_make(session.pk, position, 0) for position in range(48)}
        with override_settings(SECRET_KEY="another"):
            guessed = {handle_make(session.pk, position, 0) for position in range(48)}
        assert not made & guessed
        assert made & set(handles.values())

    def test_handles_of_equal_contents_differ(self, api: Api, handles: dict[int, str]) -> None:
        assert len(set(handles.values())) == len(handles)

    @pytest.mark.parametrize("handle", ["h_", "x", "h_aaaaaaaaaa", "%00", "h_%00", "..%2F", "x" * 500])
    def test_an_invalid_handle_is_not_found(self, api: Api, session: dict[str, Any], handle: str) -> None:
        assert api.get(f"sessions/s1/blobs/{handle}/").status_code == 404


class TestSearching:
    def search(self, api: Api, query: str) -> list[dict[str, Any]]:
        response = api.get(f"sessions/s1/search/?q={query}")
        assert response.status_code == 200, response.content
        hits: list[dict[str, Any]] = response.json()["data"]
        return hits

    @pytest.mark.slow
    def test_removed_content_is_found(self, api: Api, handles: dict[int, str]) -> None:
        assert "handler_0_41" not in str(prompt(api)["messages"])
        hit = self.search(api, "handler_0_41")[0]
        assert (hit["turn"], hit["position"], hit["role"]) == (0, 2, "tool")
        assert "handler_0_41" in hit["snippet"]

    def test_no_word_is_mandatory_but_a_phrase_is(self, api: Api, session: dict[str, Any]) -> None:
        push(api, [request("The Quick brown fox"), request("the quick red hen"), request("GROẞE Straße é")])
        assert [hit["position"] for hit in self.search(api, "FOX quick")] == [0, 1]
        assert [hit["position"] for hit in self.search(api, '"quick brown"')] == [0]
        assert self.search(api, '"brown quick"') == []
        assert [hit["position"] for hit in self.search(api, "strasse")] == [2]

    def test_json_escapes_are_not_searched(self, api: Api, session: dict[str, Any]) -> None:
        body = rb'{"messages":[{"role":"user","content":"caf\u00e9 a\/b \"said\"\nnext"}]}'
        api.post("sessions/s1/turns/", body)
        for query in ("caf%C3%A9", "%22said", "next"):
            assert len(self.search(api, query)) == 1, query
        for query in ("u00e9", "role", "nnext", "content", "a/b"):
            assert self.search(api, query) == [], query

    def test_pages_follow_each_other(self, api: Api, session: dict[str, Any]) -> None:
        push(api, [request(f"word {number}") for number in range(25)])
        first = api.get("sessions/s1/search/?q=word&limit=10").json()
        rest = api.get(f"sessions/s1/search/?q=word&limit=100&cursor={first['next_cursor']}").json()
        assert sorted(hit["position"] for hit in first["data"] + rest["data"]) == list(range(25))
        assert rest["next_cursor"] is None

    @pytest.mark.parametrize("query", ["", "?q=", "?q=%20", "?q=%22%22", "?q=x&limit=0", "?q=x&cursor=x"])
    def test_an_invalid_query_is_rejected(self, api: Api, session: dict[str, Any], query: str) -> None:
        assert api.get(f"sessions/s1/search/{query}").status_code == 400

    @pytest.mark.parametrize(
        "query", ["%22", "'", "\\", "%00", "a%22b%22c", "%F0%9F%98%80", "(", "x" * 5_000]
    )
    def test_any_text_is_a_valid_query(self, api: Api, session: dict[str, Any], query: str) -> None:
        push(api, whole_turn(0))
        assert api.get(f"sessions/s1/search/?q={query}").status_code in {200, 400}


def screenshot(number: int, *blocks: dict[str, Any]) -> list[dict[str, Any]]:
    """Return a call of a tool that takes a screenshot, and its result."""
    source = {"type": "base64", "media_type": "image/png", "data": "A" * 40_000}
    content = [{"type": "image", "source": source}, *blocks]
    output = {"type": "tool_result", "tool_use_id": f"toolu_{number}", "content": content}
    return [call(f"toolu_{number}", "screenshot"), {"role": "user", "content": [output]}]


def test_an_image_is_not_described_as_an_empty_output(api: Api) -> None:
    api.post("sessions/", {"id": "s1", "format": "anthropic", "budget": {"input_tokens": 3_000}})
    push(api, [request("Look at the page."), *screenshot(0)])
    push(api, screenshot(1, {"type": "text", "text": "The login page"}))
    push(api, screenshot(2))
    shown = api.get("sessions/s1/prompt/").content.decode()
    assert "0 characters" not in shown
    assert shown.count("an image or document, which cannot be retrieved") == 2
    [handle] = shown_handles(api)
    content = api.get(f"sessions/s1/blobs/{handle}/").json()
    assert content["text"] == "The login page\n[an image or document, which cannot be retrieved]"
