"""The other formats: recognition by content, clean messages, usage in disjoint parts."""

from __future__ import annotations

import gzip
import os
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import zstandard

from compaction.messages import Usage
from compaction.validation import validate
from importers.base import LogFile
from importers.discovery import discovered_folders
from importers.reading import UnreadableLogError, log_sources
from importers.registry import recognize
from tests.importers.logs import document, jsonl, read
from tests.importers.pairing import bodies, misplaced


def call(id: str, arguments: Any = '{"command": "ls"}') -> dict[str, Any]:
    return {"index": 0, "id": id, "type": "function", "function": {"name": "bash", "arguments": arguments}}


ASK = {
    "role": "user",
    "content": [{"type": "text", "text": "Fix it", "cache_control": {"type": "ephemeral"}}],
}
ANSWER = {"role": "assistant", "content": "Looking", "tool_calls": [call("c1")], "function_call": None}
RESULT = {"role": "tool", "tool_call_id": "c1", "content": "a.py"}


def logged(messages: list[Any], answer: Any, id: str, prompt: int, cached: int) -> dict[str, Any]:
    usage = {
        "prompt_tokens": prompt,
        "completion_tokens": 9,
        "prompt_tokens_details": {"cached_tokens": cached},
    }
    response = {"id": id, "model": "litellm_proxy/gpt-5", "choices": [{"message": answer}], "usage": usage}
    return {"messages": messages, "response": response, "kwargs": {"tools": []}, "cost": 0.0125}


def test_openhands_calls_of_one_folder_are_turns_of_one_session(tmp_path: Path) -> None:
    returned = {**ANSWER, "content": [{"type": "text", "text": "Looking"}]}
    folder = tmp_path / "task-7"
    folder.mkdir()
    series = (
        logged([ASK], ANSWER, "r1", 100, 0),
        logged([ASK, returned, RESULT], {"role": "assistant", "content": "Done"}, "r2", 150, 100),
    )
    for number, value in enumerate(series):
        (folder / f"gpt-5-170000000{number}.5.json").write_bytes(document(value).data)
    (source,) = log_sources([tmp_path])
    (session,), damages = read(source.read(), "openhands")
    assert not damages
    assert [body["role"] for body in bodies(session)] == ["user", "assistant", "tool", "assistant"]
    assert [turn.response_id for turn in session.turns] == ["r1", "r2"]
    assert session.turns[1].usage == Usage(uncached_tokens=50, cache_read_tokens=100, output_tokens=9)
    assert session.turns[1].cost_microusd == 12_500
    assert "cache_control" not in str(bodies(session))
    assert not list(misplaced(session))


def test_openhands_a_repeated_task_is_a_second_run() -> None:
    first, again = logged([ASK], ANSWER, "r1", 100, 0), logged([ASK], ANSWER, "r2", 100, 0)
    sessions, _ = read(jsonl(first, again, name="task-7"), "openhands")
    assert len({session.external_id for session in sessions}) == 2


def test_mini_swe_agent() -> None:
    usage = {"prompt_tokens": 1528, "completion_tokens": 98, "prompt_cache_hit_tokens": 320}
    extra = {"response": {"id": "x1", "model": "deepseek-chat", "usage": usage}, "cost": 0.00038}
    value = {
        "trajectory_format": "mini-swe-agent-1.1",
        "instance_id": "demo-1",
        "messages": [
            ASK,
            {**ANSWER, "extra": extra},
            {**RESULT, "extra": {}},
            {"role": "exit", "content": "diff"},
        ],
    }
    (session,), _ = read(document(value), "mini-swe-agent")
    assert session.external_id == "demo-1-x1"
    assert session.turns[0].usage == Usage(uncached_tokens=1208, cache_read_tokens=320, output_tokens=98)
    assert session.turns[0].cost_microusd == 380
    assert [set(body) for body in bodies(session)] == [
        {"role", "content"},
        {"role", "content", "tool_calls"},
        {"role", "content", "tool_call_id"},
    ]


def test_pi() -> None:
    usage = {"input": 3, "output": 9, "cacheRead": 10, "cacheWrite": 20, "cost": {"total": 0.009189}}
    tool = {"type": "toolCall", "id": "c1", "name": "read", "arguments": {"path": "a.py"}}
    answer = {"role": "assistant", "content": [tool], "model": "claude-opus-4-5", "usage": usage}
    found = {
        "role": "toolResult",
        "toolCallId": "c1",
        "content": [{"type": "text", "text": "x"}],
        "isError": True,
    }
    shell = {"role": "bashExecution", "command": "make", "output": "ok"}
    messages = [{"role": "user", "content": "Go"}, answer, found, shell]
    log = jsonl(
        {"type": "session", "id": "pi-1", "cwd": "/w", "timestamp": "2026-01-05T10:00:00Z"},
        *({"type": "message", "message": message} for message in messages),
        {"type": "compaction", "summary": "So far", "tokensBefore": 900},
    )
    (session,), _ = read(log, "pi")
    assert session.turns[0].cost_microusd == 9_189
    assert bodies(session)[2]["content"][0]["is_error"] is True
    assert session.turns[1].messages[1].is_meta
    assert session.turns[2].client_compaction is not None
    assert session.turns[2].client_compaction.tokens_before == 900


def codex_items() -> list[dict[str, Any]]:
    request = {"type": "message", "role": "user", "content": [{"type": "input_text", "text": "Run it"}]}
    words = {"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": "Running"}]}
    used = {"type": "function_call", "name": "shell", "arguments": "{}", "call_id": "c1"}
    output = {"type": "function_call_output", "call_id": "c1", "output": "ok"}
    reasoning = {"type": "reasoning", "summary": [], "encrypted_content": "…"}
    return [request, reasoning, words, used, output]


def test_codex_rollout() -> None:
    count = {"input_tokens": 900, "cached_input_tokens": 600, "output_tokens": 20}
    info = {"last_token_usage": count, "total_token_usage": count, "model_context_window": 272_000}
    event = {"type": "event_msg", "payload": {"type": "token_count", "info": info}}
    log = jsonl(
        {"type": "session_meta", "payload": {"id": "cx-1", "cwd": "/w"}},
        {"type": "turn_context", "payload": {"model": "gpt-5-codex"}},
        *({"type": "response_item", "payload": item} for item in codex_items()),
        event,
        event,
        {"type": "compacted", "payload": {"message": "So far"}},
    )
    (session,), damages = read(log, "codex")
    assert not damages
    assert (session.external_id, session.model, session.context_window) == ("cx-1", "gpt-5-codex", 272_000)
    assert session.turns[0].usage == Usage(uncached_tokens=300, cache_read_tokens=600, output_tokens=20)
    assert session.format == "openai-responses"
    assert bodies(session)[:5] == codex_items()
    assert bodies(session)[5] == {"type": "message", "role": "user", "content": "So far"}
    assert [len(turn.messages) for turn in session.turns] == [4, 1, 1]
    assert validate(bodies(session), "openai-responses") == ()


def test_codex_logs_the_usage_of_a_response_with_its_id() -> None:
    usage = {"input_tokens": 900, "cached_input_tokens": 600, "cache_write_input_tokens": 200}
    usage |= {"output_tokens": 20, "reasoning_output_tokens": 5, "total_tokens": 920}
    record = {"thread_id": "cx-4", "turn_id": "t1", "response_id": "resp_1", "usage": usage}
    info = {"last_token_usage": usage, "total_token_usage": usage}
    log = jsonl(
        {"type": "session_meta", "payload": {"id": "cx-4"}},
        *({"type": "response_item", "payload": item} for item in codex_items()[:4]),
        {"type": "token_usage_record", "payload": record},
        {"type": "event_msg", "payload": {"type": "token_count", "info": info}},
        {"type": "response_item", "payload": codex_items()[4]},
    )
    (session,), damages = read(log, "codex")
    assert (bodies(session), damages) == (codex_items(), [])
    call = session.turns[0]
    assert call.response_id == "resp_1"
    assert call.usage == Usage(
        uncached_tokens=100, cache_read_tokens=600, cache_write_tokens=200, output_tokens=20
    )


def test_codex_an_aborted_response_has_no_usage() -> None:
    """The usage that follows is that of the compaction, or its estimate of the prompt."""

    def count(tokens: int) -> dict[str, Any]:
        usage = {"input_tokens": tokens, "cached_input_tokens": 0, "output_tokens": 9}
        info = {"last_token_usage": usage, "total_token_usage": usage}
        return {"type": "event_msg", "payload": {"type": "token_count", "info": info}}

    lines = [
        {"type": "session_meta", "payload": {"id": "cx-6"}},
        *({"type": "response_item", "payload": item} for item in codex_items()[:3]),
    ]
    aborted = {"type": "event_msg", "payload": {"type": "turn_aborted", "reason": "interrupted"}}
    compacted = {"type": "compacted", "payload": {"message": "So far"}}
    for later in ([aborted, count(900), compacted], [compacted, count(900)]):
        (session,), _ = read(jsonl(*lines, *later), "codex")
        assert [turn.usage for turn in session.turns] == [None, None]
        answered = [{"type": "response_item", "payload": codex_items()[2]}, count(1_000)]
        (session,), _ = read(jsonl(*lines, *later, *answered), "codex")
        usage = [turn.usage.prompt_tokens if turn.usage else 0 for turn in session.turns]
        assert usage == [0, 1_000]


def test_codex_ignores_messages_that_the_model_does_not_see() -> None:
    """A client shows them to the user, and logs them for its safety checks."""
    mark = "codex:code-mode-delivery:v1:complete"
    log = jsonl(
        {"type": "session_meta", "payload": {"id": "cx-5"}},
        {
            "type": "response_item",
            "payload": codex_items()[2],
            "metadata": {"delivered_assistant_message": mark, "user_input_order": 7},
        },
        {"type": "response_item", "payload": codex_items()[0], "metadata": {"client_authored": True}},
    )
    (session,), _ = read(log, "codex")
    assert bodies(session) == codex_items()[:1]


def test_codex_searches_for_tools_and_images_are_part_of_the_conversation() -> None:
    searched = {
        "type": "tool_search_call",
        "call_id": "s1",
        "execution": "client",
        "arguments": {"query": "ci"},
    }
    found = {"type": "tool_search_output", "call_id": "s1", "execution": "client", "status": "completed"}
    found["tools"] = [{"type": "function", "name": "run_ci", "parameters": {"type": "object"}}]
    image = {"type": "image_generation_call", "id": "ig_1", "status": "completed", "result": "aGk="}
    items = [codex_items()[0], searched, found, image]
    logged = [{**item, "internal_chat_message_metadata_passthrough": {"turn_id": "t1"}} for item in items]
    log = jsonl(
        {"type": "session_meta", "payload": {"id": "cx-2"}},
        *({"type": "response_item", "payload": item} for item in logged),
    )
    (session,), damages = read(log, "codex")
    assert (bodies(session), damages) == (items, [])
    assert [len(turn.messages) for turn in session.turns] == [2, 2]


def test_codex_a_damaged_line_does_not_hide_the_others() -> None:
    ask = {"type": "message", "role": "user", "content": [{"type": "input_text", "text": "Fix it"}]}
    log = jsonl(
        {"type": "session_meta", "payload": "cx-1"}, {"type": "response_item", "payload": ask}, name="r.jsonl"
    )
    [session], [damage] = read(log, "codex")
    assert (session.external_id, bodies(session), damage.line) == ("r", [ask], 1)


@pytest.mark.parametrize("kind", ["compaction", "compaction_summary", "context_compaction"])
def test_codex_keeps_the_compaction_of_its_provider(kind: str) -> None:
    item = {"type": kind, "id": "cmp_1", "encrypted_content": "opaque"}
    log = jsonl(
        {"type": "session_meta", "payload": {"id": "cx-2"}},
        *({"type": "response_item", "payload": item} for item in codex_items()),
        {"type": "compacted", "payload": {"message": "", "replacement_history": [codex_items()[0], item]}},
    )
    (session,), _ = read(log, "codex")
    assert bodies(session)[-1] == {**item, "type": "compaction"}
    assert session.turns[-1].client_compaction is not None


def test_codex_messages_of_other_agents_are_input() -> None:
    content = [{"type": "input_text", "text": "Find the test."}]
    task = {"type": "agent_message", "author": "/root", "recipient": "/root/find", "content": content}
    answer = {"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": "Found."}]}
    log = jsonl(
        {"type": "session_meta", "payload": {"id": "cx-3"}},
        *({"type": "response_item", "payload": item} for item in (task, answer)),
    )
    (session,), damages = read(log, "codex")
    assert (bodies(session), damages) == ([task, answer], [])
    assert [message.is_meta for message in session.turns[0].messages] == [True, False]
    assert validate(bodies(session), "openai-responses") == ()


@pytest.mark.parametrize("encrypted", [None, "opaque"])
def test_codex_messages_of_other_agents_may_be_separate_lines(encrypted: str | None) -> None:
    sent = {"author": "/root", "recipient": "/root/find", "other_recipients": [], "trigger_turn": True}
    log = jsonl(
        {"type": "session_meta", "payload": {"id": "cx-6"}},
        {
            "type": "inter_agent_communication",
            "payload": {**sent, "content": "" if encrypted else "Find it.", "encrypted_content": encrypted},
        },
        {"type": "response_item", "payload": codex_items()[2]},
    )
    (session,), damages = read(log, "codex")
    task, answer = bodies(session)
    assert (answer, damages) == (codex_items()[2], [])
    assert (task["type"], task["author"], task["recipient"]) == ("agent_message", "/root", "/root/find")
    texts = [part.get("encrypted_content") or part["text"] for part in task["content"]]
    header = "Message Type: NEW_TASK\nTask name: /root/find\nSender: /root\nPayload:\n"
    assert texts == ([header, "opaque"] if encrypted else ["Find it."])
    assert validate(bodies(session), "openai-responses") == ()


def test_codex_before_september_2025() -> None:
    first = {"id": "cx-0", "timestamp": "2025-07-01T10:00:00Z", "instructions": None}
    (bare,), _ = read(jsonl(first, {"record_type": "state"}, *codex_items()), "codex")
    (single,), _ = read(document({"session": {"id": "cx-0"}, "items": codex_items()}), "codex")
    assert bare.external_id == single.external_id == "cx-0"
    assert bodies(bare) == bodies(single)


def test_tau_bench() -> None:
    value = [{"task_id": 4, "trial": 1, "reward": 1.0, "traj": [ASK, ANSWER, {**RESULT, "name": "bash"}]}]
    (session,), _ = read(document(value, name="gpt.json"), "tau-bench")
    assert session.external_id == "gpt-task4-trial1"
    assert "name" not in bodies(session)[2]


def test_tau2_excludes_the_simulated_users_tool_calls() -> None:
    flat = {"id": "c1", "name": "find", "arguments": {"a": 1}, "requestor": "assistant"}
    messages = [
        {"role": "assistant", "content": "Hi!", "turn_idx": 0},
        {"role": "user", "content": "Help", "turn_idx": 1},
        {
            "role": "user",
            "content": None,
            "tool_calls": [{**flat, "id": "u1", "requestor": "user"}],
            "turn_idx": 2,
        },
        {"role": "tool", "id": "u1", "content": "mine", "requestor": "user", "turn_idx": 3},
        {
            "role": "assistant",
            "content": None,
            "tool_calls": [flat],
            "turn_idx": 4,
            "usage": {"prompt_tokens": 7},
        },
        {"role": "tool", "id": "c1", "content": "found", "requestor": "assistant", "turn_idx": 5},
    ]
    value = {"info": {"agent_info": {"llm": "gpt-5"}}, "simulations": [{"id": "s-1", "messages": messages}]}
    (session,), _ = read(document(value), "tau2-bench")
    assert [body["role"] for body in bodies(session)] == ["assistant", "user", "assistant", "tool"]
    assert bodies(session)[2]["tool_calls"][0]["function"]["arguments"] == '{"a": 1}'


def test_plain_chat_is_read_in_every_form() -> None:
    chat = [{"role": "user", "content": "Fix it"}, ANSWER, RESULT]
    shapes = [
        document(chat),
        document({"messages": chat}),
        jsonl(*chat, name="run.jsonl"),
        jsonl({"messages": chat}, name="run.jsonl"),
        jsonl({"messages": chat[:1]}, {"messages": chat}, name="run.jsonl"),
    ]
    found = [bodies(read(shape, "openai-chat")[0][0]) for shape in shapes]
    assert all(shape == found[0] for shape in found)


def test_unrelated_conversations_are_separate_sessions() -> None:
    log = jsonl({"messages": [ASK]}, {"messages": [{"role": "user", "content": "Else"}]}, name="set.jsonl")
    sessions, _ = read(log, "openai-chat")
    assert [session.external_id for session in sessions] == ["set", "set-2"]


def test_a_log_that_grows_by_a_conversation_keeps_its_names() -> None:
    first, second = ({"messages": [{"role": "user", "content": text}]} for text in ("One", "Two"))
    for values, names in (([first], ["set"]), ([first, second], ["set", "set-2"])):
        sessions, _ = read(jsonl(*values, name="set.jsonl"), "openai-chat")
        assert [session.external_id for session in sessions] == names


@pytest.mark.parametrize(
    "data",
    [
        *(b"", b"hello", b"[]", b"{}", b"[[]]", b'{"messages": []}', b"\x00\xff", b"3"),
        b'{"role": [], "content": "x"}',
    ],
)
def test_a_file_that_is_not_a_log_is_not_recognized(data: bytes) -> None:
    assert recognize(LogFile(name="x.json", data=data)) is None


def test_replaced_bytes_of_a_document_are_reported() -> None:
    history = [{"role": "user", "content": "caf\xe9", "agent": "main"}]
    for format, value in (("openai-chat", history[0]), ("swe-agent", {"history": history})):
        log = document(value)
        (session,), damages = read(replace(log, data=log.data.replace(b"\xc3\xa9", b"\xe9")), format)
        assert bodies(session)[0]["content"] == "caf\ufffd"
        assert [damage.reason for damage in damages] == ["invalid UTF-8 was replaced"]


def test_compressed_and_damaged_files(tmp_path: Path) -> None:
    data = document([ASK]).data
    (tmp_path / "a.json.gz").write_bytes(gzip.compress(data))
    (tmp_path / "b.json.zst").write_bytes(zstandard.compress(data))
    (tmp_path / "c.json.gz").write_bytes(gzip.compress(data)[:-9])
    (tmp_path / os.fsdecode(b"d\xff.json")).write_bytes(data)
    (tmp_path / "notes.md").write_text("no log")
    first, second, damaged, latin = log_sources([tmp_path])
    assert latin.name.endswith("d\ufffd.json")
    assert first.read().data == second.read().data == data
    assert first.name.endswith("a.json")
    with pytest.raises(UnreadableLogError, match=r"c\.json\.gz"):
        damaged.read()


def test_variables_that_move_logs(tmp_path: Path) -> None:
    places = {
        "PI_CODING_AGENT_SESSION_DIR": "",
        "GOOSE_PATH_ROOT": "data/sessions",
        "GEMINI_CLI_HOME": ".gemini/tmp/app/chats",
        "QWEN_HOME": "projects/app/chats",
        "QWEN_RUNTIME_DIR": "projects/app/subagents",
        "CLINE_DIR": "data/sessions",
        "CLINE_DATA_DIR": "sessions",
        "CLINE_SESSION_DATA_DIR": "",
    }
    for variable, place in places.items():
        folder = tmp_path / variable / place
        folder.mkdir(parents=True)
        assert discovered_folders({variable: str(tmp_path / variable)}, tmp_path / "home") == [folder]
    same = {"CLINE_DIR": str(tmp_path / "c"), "CLINE_DATA_DIR": str(tmp_path / "c" / "data")}
    (tmp_path / "c" / "data" / "sessions").mkdir(parents=True)
    assert discovered_folders(same, tmp_path / "home") == [tmp_path / "c" / "data" / "sessions"]


def test_discovered_folders(tmp_path: Path) -> None:
    found = (
        *(".claude/projects", ".codex/sessions", ".copilot/session-state"),
        *(".local/share/amp/threads", ".local/share/opencode"),
        *(".continue/sessions", ".pi/agent/sessions", ".gemini/tmp/app/chats", ".qwen/projects/app/chats"),
        ".config/Code/User/workspaceStorage/0a1b/chatSessions",
        ".config/Code/User/globalStorage/emptyWindowChatSessions",
        ".config/Cursor/User/globalStorage/rooveterinaryinc.roo-cline/tasks",
    )
    for folder in (*found, "other/projects"):
        (tmp_path / folder).mkdir(parents=True)
    assert discovered_folders({}, tmp_path) == [tmp_path / folder for folder in found]
    configured = {"CLAUDE_CONFIG_DIR": str(tmp_path / "other")}
    assert discovered_folders(configured, tmp_path)[0] == tmp_path / "other/projects"
