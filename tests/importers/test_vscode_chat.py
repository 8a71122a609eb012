"""Chat sessions of VS Code. The library that Copilot uses wrote and rendered the tool result."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import orjson
import pytest

from compaction.messages import Usage
from importers.base import ImportedSession, LogFile
from importers.reading import log_sources
from tests.importers.logs import document, jsonl, read
from tests.importers.pairing import bodies, misplaced

JSON = dict[str, Any]


#: A tree of text with an image, and the parts of a message as which the library renders it.
RESULT = orjson.loads((Path(__file__).parent / "recorded" / "vscode-tool-result.json").read_bytes())

METADATA = {
    "promptTokens": 900,
    "outputTokens": 30,
    "resolvedModel": "claude-sonnet-4.5",
    "modelMessageId": "m-1",
    "renderedGlobalContext": [
        {"type": 1, "text": "<workspace_info/>"},
        {"type": 3, "cacheType": "ephemeral"},
    ],
    "renderedUserMessage": [
        {"type": 1, "text": "<userRequest>\nShow the file\n</userRequest>"},
        {"type": 0, "imageUrl": {"url": "data:image/jpeg;base64,aGVsbG8="}},
    ],
    "toolCallRounds": [
        {
            "id": "round-1",
            "response": "I read it.",
            "thinking": {"id": "t", "text": ["Which ", "file?"], "encrypted": "c2ln"},
            "toolCalls": [
                {"id": "c1", "name": "read_file", "arguments": '{"filePath": "a.py"}'},
                {"id": "c2", "name": "run_in_terminal", "arguments": "{broken"},
            ],
            "timestamp": 1_767_607_201_000,
        },
        {"id": "round-2", "response": "Done.", "toolCalls": [], "timestamp": 1_767_607_203_000},
    ],
    "toolCallResults": {
        "c1": {"$mid": 20, "content": [{"$mid": 23, "value": RESULT["tree"]}]},
        "c2": {"$mid": 20, "content": [{"$mid": 21, "value": "no such command"}], "hasError": True},
    },
}
REQUEST = {
    "requestId": "request_1",
    "message": {"text": "Show the file", "parts": []},
    "response": [{"value": "I read it."}],
    "result": {"timings": {"firstProgress": 400, "totalElapsed": 3_000}, "metadata": METADATA},
    "responseId": "response_1",
    "timestamp": 1_767_607_200_000,
    "modelId": "copilot/auto",
}
SESSION = {
    "version": 3,
    "responderUsername": "GitHub Copilot",
    "sessionId": "s-1",
    "creationDate": 1_767_607_199_000,
    "customTitle": "A file",
    "inputState": {"selectedModel": {"identifier": "copilot/auto", "metadata": {"maxInputTokens": 128_000}}},
    "requests": [REQUEST],
}


def asked(number: int, text: str, *parts: JSON, **metadata: Any) -> JSON:
    """Return a request as older versions log it, or before it is complete."""
    return {
        "requestId": f"request_{number}",
        "message": {"text": text},
        "response": list(parts),
        "result": {"metadata": metadata},
    }


def sessions_of(log: LogFile) -> list[ImportedSession]:
    sessions, damages = read(log, "vscode-chat")
    assert damages == []
    assert not [complaint for session in sessions for complaint in misplaced(session)]
    return sessions


def test_a_session() -> None:
    [session] = sessions_of(document(SESSION))
    assert (session.external_id, session.title, session.context_window) == ("s-1", "A file", 128_000)
    assert session.model == "claude-sonnet-4.5"
    context, request, first, results, last = bodies(session)
    assert context["content"] == [{"type": "text", "text": "<workspace_info/>"}]
    assert request["content"][1]["source"]["media_type"] == "image/jpeg"
    assert first["content"] == [
        {"type": "thinking", "thinking": "Which file?"},
        {"type": "text", "text": "I read it."},
        {"type": "tool_use", "id": "c1", "name": "read_file", "input": {"filePath": "a.py"}},
        {"type": "tool_use", "id": "c2", "name": "run_in_terminal", "input": {"input": "{broken"}},
    ]
    read_file, failed = results["content"]
    assert read_file["content"] == [
        {"type": "text", "text": RESULT["rendered"][0]["text"]},
        {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": "aGVsbG8="}},
        {"type": "text", "text": "post image"},
    ]
    assert (failed["content"], failed["is_error"]) == ("no such command", True)
    assert last["content"] == [{"type": "text", "text": "Done."}]
    assert [message.is_meta for message in session.turns[0].messages] == [True, False, False]
    assert session.turns[0].first_token_ms == 400
    assert (session.turns[0].usage, session.turns[1].usage) == (
        None,
        Usage(uncached_tokens=900, cache_read_tokens=0, cache_write_tokens=0, output_tokens=30),
    )


def test_a_stored_session_is_its_first_state_and_the_changes() -> None:
    empty: JSON = {**SESSION, "requests": [], "customTitle": None}
    running = {**REQUEST, "result": None, "response": []}
    log = jsonl(
        {"kind": 0, "v": empty},
        {"kind": 2, "k": ["requests"], "v": [running, asked(2, "Discarded")]},
        {"kind": 2, "k": ["requests"], "i": 1},
        {"kind": 2, "k": ["requests", 0, "response"], "v": [{"value": "I "}]},
        {"kind": 2, "k": ["requests", 0, "response"], "v": REQUEST["response"], "i": 0},
        {"kind": 1, "k": ["requests", 0, "result"], "v": REQUEST["result"]},
        {"kind": 1, "k": ["hasPendingEdits"], "v": True},
        {"kind": 3, "k": ["hasPendingEdits"]},
        {"kind": 1, "k": ["customTitle"], "v": "A file"},
    )
    assert sessions_of(log) == sessions_of(document(SESSION))


@pytest.mark.parametrize(
    "change",
    [
        {"kind": 1, "k": ["requests", 7, "result"], "v": {}},
        {"kind": 1, "k": []},
        {"kind": 2, "k": ["requests"], "v": [], "i": -1},
        {"kind": 2, "k": ["requests", 10**9], "v": []},
        {"kind": 1, "k": ["version", "a"], "v": 1},
        {"kind": 9, "k": ["requests"], "v": []},
        {"kind": 0, "v": 5},
    ],
)
def test_an_impossible_change_is_reported(change: JSON) -> None:
    sessions, [damage] = read(jsonl({"kind": 0, "v": SESSION}, change), "vscode-chat")
    assert damage.line == 2
    assert sessions == sessions_of(document(SESSION))


def test_the_folder_of_the_workspace(tmp_path: Path) -> None:
    sessions = tmp_path / "0a1b" / "chatSessions"
    sessions.mkdir(parents=True)
    (tmp_path / "0a1b" / "workspace.json").write_bytes(
        orjson.dumps({"folder": "file:///c%3A/work/my%20app"}, option=orjson.OPT_INDENT_2)
    )
    (sessions / "a.json").write_bytes(document(SESSION).data)
    (sessions / "b.jsonl").write_bytes(
        jsonl({"kind": 0, "v": SESSION}, {"kind": 1, "k": ["customTitle"], "v": "B"}).data
    )
    found = [sessions_of(source.read())[0] for source in log_sources([tmp_path])]
    assert [session.title for session in found] == ["A file", "B"]
    assert {session.metadata["cwd"] for session in found} == {"c:/work/my app"}


def test_a_request_without_logged_messages_is_read_from_what_the_user_saw() -> None:
    terminal = {
        "kind": "toolInvocationSerialized",
        "toolId": "run_in_terminal",
        "toolCallId": "t1",
        "toolSpecificData": {
            "kind": "terminal",
            "commandLine": {"original": "make"},
            "terminalCommandOutput": {"text": "ok"},
        },
    }
    mcp = {
        "kind": "toolInvocationSerialized",
        "toolId": "mcp_add",
        "toolCallId": "t2",
        "resultDetails": {"input": '{"x": 1}', "output": [{"type": "embed", "value": "2"}], "isError": True},
    }
    other = {
        "kind": "toolInvocationSerialized",
        "toolId": "copilot_readFile",
        "invocationMessage": {"value": "Reading a.py"},
        "pastTenseMessage": "Read a.py",
    }
    parts: list[JSON] = [
        {"kind": "mcpServersStarting", "didStartServerIds": []},
        {"kind": "thinking", "value": "Hm."},
        {"value": "See "},
        {
            "kind": "inlineReference",
            "inlineReference": {"$mid": 1, "path": "/work/index.ts", "scheme": "file"},
        },
        {"value": "."},
        terminal,
        mcp,
        {"kind": "undoStop"},
        other,
        {"value": "Done."},
    ]
    [session] = sessions_of(document({**SESSION, "requests": [asked(1, "Build it", *parts)]}))
    _, first, results, last = (body["content"] for body in bodies(session))
    assert first[:2] == [
        {"type": "thinking", "thinking": "Hm."},
        {"type": "text", "text": "See `index.ts`."},
    ]
    assert [block["input"] for block in first[2:]] == [
        {"command": "make"},
        {"x": 1},
        {"message": "Reading a.py"},
    ]
    assert [(block["content"], "is_error" in block) for block in results] == [
        ("ok", False),
        ("2", True),
        ("Read a.py", False),
    ]
    assert last == [{"type": "text", "text": "Done."}]


def test_a_sub_agent() -> None:
    facts = {"kind": "subagent", "description": "Find it", "prompt": "Find the bug", "result": "In a.py"}
    start = {
        "kind": "toolInvocationSerialized",
        "toolId": "runSubagent",
        "toolCallId": "p1",
        "toolSpecificData": facts,
    }
    step = {
        "kind": "toolInvocationSerialized",
        "toolId": "read_file",
        "toolCallId": "p2",
        "subAgentInvocationId": "p1",
    }
    request = asked(2, "Fix it", start, step, {"value": "Fixed."})
    main, agent = sessions_of(document({**SESSION, "requests": [REQUEST, request]}))
    assert [body["content"][0]["type"] for body in bodies(main)[5:]] == [
        "text",
        "tool_use",
        "tool_result",
        "text",
    ]
    assert (agent.external_id, agent.parent_external_id, agent.title) == ("s-1:agent-p1", "s-1", "Find it")
    assert [body["content"][0]["type"] for body in bodies(agent)] == [
        "text",
        "tool_use",
        "tool_result",
        "text",
    ]
    assert bodies(agent)[-1]["content"] == [{"type": "text", "text": "In a.py"}]


def test_summaries_are_compactions() -> None:
    own = [{"toolCallRoundId": "round-1", "text": "So far: read."}]
    first = {**REQUEST, "result": {"metadata": {**METADATA, "summaries": own}}}
    later = asked(2, "Go on", {"value": "Yes."}, summary={"toolCallRoundId": "round-2", "text": "All done."})
    [session] = sessions_of(document({**SESSION, "requests": [first, later]}))
    summaries = [
        message.body["content"][0]["text"]
        for turn in session.turns
        if turn.client_compaction
        for message in turn.messages
        if message.is_summary
    ]
    assert summaries == ["So far: read.", "All done."]


def test_a_damaged_request_does_not_hide_the_others() -> None:
    requests = [5, REQUEST, {"message": 5}]
    [session], damages = read(document({**SESSION, "requests": requests}), "vscode-chat")
    assert len(session.turns) == 2
    assert [damage.line for damage in damages] == [1, 3]


@pytest.mark.parametrize("state", [0, 4])
def test_a_running_request_is_imported_when_it_is_complete(state: int) -> None:
    running = asked(2, "Go on", {"value": "I am on it."}) | {"result": None, "modelState": {"value": state}}
    done = {"metadata": {"toolCallRounds": [{"id": "round-3", "response": "It is done."}]}}
    changes: list[JSON] = [
        {"kind": 0, "v": {**SESSION, "requests": [REQUEST, running]}},
        {"kind": 1, "k": ["requests", 1, "result"], "v": done},
    ]
    assert sessions_of(jsonl(changes[0])) == sessions_of(document(SESSION))
    [session] = sessions_of(jsonl(*changes))
    assert bodies(session)[-1]["content"] == [{"type": "text", "text": "It is done."}]
