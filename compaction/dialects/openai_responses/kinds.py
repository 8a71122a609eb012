"""The kinds of items in the `input` of a request to OpenAI's Responses API."""

from __future__ import annotations

from collections.abc import Mapping

from compaction.messages import JSON

NAME = "openai-responses"

MESSAGE, REASONING, COMPACTION = "message", "reasoning", "compaction"
ITEM_REFERENCE = "item_reference"
CUSTOM_CALL, CUSTOM_OUTPUT = "custom_tool_call", "custom_tool_call_output"
FUNCTION_CALL, FUNCTION_OUTPUT = "function_call", "function_call_output"
COMPUTER_CALL, COMPUTER_OUTPUT = "computer_call", "computer_call_output"
SHELL_OUTPUT, PATCH_OUTPUT = "shell_call_output", "apply_patch_call_output"

#: The kinds of calls that the client runs, and the kind of their output.
OUTPUTS: Mapping[str, str] = {
    FUNCTION_CALL: FUNCTION_OUTPUT,
    CUSTOM_CALL: CUSTOM_OUTPUT,
    "local_shell_call": "local_shell_call_output",
    "shell_call": SHELL_OUTPUT,
    "apply_patch_call": PATCH_OUTPUT,
    COMPUTER_CALL: COMPUTER_OUTPUT,
}
CALLS = frozenset(OUTPUTS)
OUTPUT_KINDS = frozenset(OUTPUTS.values())
#: Outputs that must have one type. Those of functions and custom tools are a string or an array of content.
_OUTPUT_TYPES: Mapping[str, type] = {
    "local_shell_call_output": str,
    SHELL_OUTPUT: list,
    PATCH_OUTPUT: str,
    COMPUTER_OUTPUT: dict,
}

#: Calls and other items that the provider runs or writes.
HOSTED = frozenset(
    {"web_search_call", "file_search_call", "code_interpreter_call", "image_generation_call", "mcp_call"}
    | {"mcp_list_tools", "mcp_approval_request", "tool_search_call", "tool_search_output", "program"}
    | {"program_output", "multi_agent_call", "multi_agent_call_output", ITEM_REFERENCE, COMPACTION}
)

#: Items that change the tools or the reasoning effort from their position on. Codex sends all tools as the
#: first item of its newest models.
SETTINGS = frozenset({"additional_tools", "configuration_update"})

#: Other items that the client adds, apart from messages and outputs.
CLIENT = frozenset({"mcp_approval_response", "compaction_trigger", "agent_message"})

#: All kinds of items that are not messages.
ITEMS = CALLS | OUTPUT_KINDS | HOSTED | SETTINGS | CLIENT | {REASONING}

ROLES = frozenset({"system", "developer", "user", "assistant"})

#: Calls of the client whose `id` the provider requires in addition to the `call_id`.
ID_REQUIRED = frozenset({COMPUTER_CALL, "local_shell_call"})

#: Prefixes that the ids of items must have. These ids are optional in requests.
ID_PREFIXES: Mapping[str, str] = {MESSAGE: "msg", REASONING: "rs", FUNCTION_CALL: "fc", CUSTOM_CALL: "ctc"}

#: Other kinds whose ids are unique, and optional in requests.
ID_OPTIONAL = frozenset({"shell_call", "apply_patch_call", "tool_search_call", "tool_search_output"})

#: Items of the provider whose ids are unique and required.
ID_HOSTED = frozenset(
    {"web_search_call", "file_search_call", "code_interpreter_call", "image_generation_call", "mcp_call"}
    | {"mcp_list_tools", "program", "program_output", COMPUTER_CALL}
)

#: Maximum length of an id of an item or a call.
MAX_ID = 64

#: Parts of a message's content, by the kind of their text.
INPUT_TEXT, OUTPUT_TEXT = "input_text", "output_text"
MEDIA = frozenset({"input_image", "input_file", "input_audio"})


def kind_of(item: Mapping[str, JSON]) -> str:
    """Return the kind of an item. Messages may omit it."""
    kind = item.get("type")
    return kind if isinstance(kind, str) else MESSAGE


def can_answer(output: str, call: str) -> bool:
    """Return whether the provider accepts an output of one kind for a call of another.

    Clients also answer calls of the local shell with outputs of functions.
    """
    return output == OUTPUTS[call] or (call == "local_shell_call" and output == FUNCTION_OUTPUT)


def is_output(kind: str, output: JSON) -> bool:
    """Return whether the provider accepts this `output` of an item. That of a shell is an array of runs, and
    that of a patch is optional.
    """
    if kind == PATCH_OUTPUT and output is None:
        return True
    if kind == SHELL_OUTPUT and isinstance(output, list):
        return all(isinstance(run, Mapping) and "stdout" in run for run in output)
    return isinstance(output, _OUTPUT_TYPES.get(kind, str | list))


def text_kind(role: object) -> str:
    """Return the kind of the text parts in messages of this role."""
    return OUTPUT_TEXT if role == "assistant" else INPUT_TEXT


def call_id_of(item: Mapping[str, JSON]) -> JSON:
    """Return the id by which a call and its output belong together. Items of the local shell have one id."""
    return item["call_id"] if "call_id" in item else item.get("id")
