"""How the texts of a transcript are rendered."""

import base64
import time
import tracemalloc
from html import unescape

import pytest
from django.urls import reverse
from django.utils.html import strip_tags
from hypothesis import given
from hypothesis import strategies as st

from sessions.pages.rendering.ansi import ansi_html
from sessions.pages.rendering.code import code_html, language_of, numbered_html
from sessions.pages.rendering.images import images_of
from sessions.pages.rendering.jsontree import json_html, json_parse
from sessions.pages.rendering.markdown import markdown_html
from tests.pages.transcripts import make_session, message, turn

PIXEL = base64.b64encode(b"\x89PNG\r\n\x1a\n" + bytes(40)).decode()
EVIL = "<script>alert(1)</script><img src=x onerror=alert(2)>"


def test_markdown_becomes_html():
    html = markdown_html("# Plan\n\n- **one**\n- `two`\n\n| a | b |\n|---|---|\n| 1 | 2 |\n\nfirst\nsecond")
    for piece in ("<h4>Plan</h4>", "<strong>one</strong>", "<code>two</code>", "<td>1</td>", "first<br />"):
        assert piece in html


def test_markdown_tables_are_aligned_without_inline_styles():
    html = markdown_html("| a | b | c | d |\n|:--|:-:|--:|---|\n| 1 | 2 | 3 | 4 |")
    assert '<td class="align-left">1</td>' in html
    assert '<td class="align-center">2</td>' in html
    assert '<th class="align-right">c</th>' in html
    assert "<td>4</td>" in html
    assert "style" not in html


def test_markdown_lists_begin_where_their_text_begins():
    html = markdown_html("- ראשון\n\n3. שני")
    assert '<ul dir="auto">' in html
    assert '<ol start="3" dir="auto">' in html


def test_markdown_cannot_add_html_scripts_or_requests():
    html = markdown_html(f"{EVIL}\n[a](javascript:alert(1)) ![b](https://host/x.png) [c](docs/x.md)")
    assert "<script" not in html
    assert "<img" not in html
    assert "javascript" not in html.replace("[a](javascript:alert(1))", "")
    assert '<a href="https://host/x.png" rel="noopener noreferrer nofollow"' in html
    assert "<span>c</span>" in html


def test_code_fences_are_highlighted():
    assert '<span class="hl-k">def</span>' in markdown_html("```python\ndef f(): ...\n```")
    assert "&lt;b&gt;" in markdown_html("```no-such-language\n<b>\n```")


@given(st.text(alphabet="<>&\"'`*_#[]()!|-\n\x1b0123m;ab{}:,.→\t "))
def test_no_text_adds_tags(text):
    """Tags of a transcript stay text: without our own tags, nothing that opens one is left."""
    for html in (markdown_html(text), ansi_html(text), code_html(text, "python")):
        assert "<b>" not in html
        assert "<ba" not in html


def test_terminal_colors_become_classes():
    html = ansi_html("\x1b[1;31mfailed\x1b[0m \x1b[38;5;46mok\x1b[39m\x1b[2K <b>\x1b]0;t\x07")
    assert '<span class="ansi-bold ansi-fg1">failed</span> <span class="ansi-fg10">ok</span>' in html
    assert html.endswith(" &lt;b&gt;␛]0;t␇")


def test_a_file_with_line_numbers_has_a_gutter():
    html = numbered_html("     1→def f():\n     2→    return 1\nTruncated", "python")
    assert '<span class="gutter">     1  </span><span class="hl-k">def</span>' in html
    assert html.endswith("\nTruncated")
    assert numbered_html("1  apple\n7  pears", None) is None


def test_numbers_of_thousands_of_digits_are_text():
    many = "9" * 5_000
    assert ansi_html(f"\x1b[{many}mred").endswith("red")
    assert numbered_html(f"{many}\ta\n{many}\tb\n", None) is None
    assert numbered_html(f"     1→a\n     {many}→b\n", None) is None


def test_languages_are_known_by_file_name():
    assert language_of("src/app.tsx") == "tsx"
    assert language_of("C:\\work\\main.rs") == "rust"
    assert language_of("schema.sql") == "sql"
    assert language_of("notes.txt") is None
    assert language_of("LICENSE") is None


def test_long_paths_and_languages_do_not_stay_in_memory() -> None:
    """They come from transcripts, and the process serves all projects."""
    tracemalloc.start()
    for number in range(30):
        language_of(f"{'x' * 40_000}{number}.zz/{number}.zz")
        markdown_html(f"```{'y' * 40_000}{number}\n```")
    kept = tracemalloc.get_traced_memory()[0]
    tracemalloc.stop()
    assert kept < 1_000_000


def test_json_is_a_tree():
    html = json_html(json_parse('{"a": [1, true, null, "<b>"], "long": "' + "x\\n" * 5 + '"}'))
    assert html.count("<details open>") == 2
    for piece in ("{2 keys}", "[4]", ">true<", "&lt;b&gt;", '<pre class="json-string">'):
        assert piece in html


@pytest.mark.parametrize("text", ["{}", "[1, 2", "plain", "", '"text"', "[" * 2_000])
def test_other_text_is_not_json(text):
    assert json_parse(text) is None


def test_a_large_json_names_what_it_leaves_out():
    assert "more</li>" in json_html(list(range(2_000)))


def test_images_have_the_type_that_they_claim():
    def block(kind, data):
        return {"source": {"type": "base64", "media_type": kind, "data": data}}

    assert len(images_of(block("image/png", PIXEL))) == 1
    assert images_of(block("image/svg+xml", PIXEL)) == []
    assert images_of(block("image/jpeg", PIXEL)) == []
    assert images_of(block("image/png", "not base64")) == []
    assert images_of({"image_url": {"url": "https://host/x.png"}}) == []
    [image] = images_of({"image_url": {"url": f"data:image/png;base64,{PIXEL}"}})
    assert image.media_type == "image/png"


@pytest.mark.django_db
class TestPages:
    def session(self, project, output="\x1b[32mgreen\x1b[0m", name="Bash", pixel=PIXEL, **arguments):
        call = {"type": "tool_use", "id": "c1", "name": name, "input": arguments or {"command": "ls"}}
        image = {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": pixel}}
        result = {"type": "tool_result", "tool_use_id": "c1", "content": output}
        turns = [
            turn(0, [message("user", [{"type": "text", "text": "**Go**"}, image], "u0")]),
            turn(1, [message("assistant", [call], "a0"), message("user", [result], "u1")]),
        ]
        return make_session(project, turns)

    def test_a_session_page_renders_its_messages(self, member_client, project):
        session = self.session(project)
        page = member_client.get(reverse("session", args=[project.slug, session.pk])).text
        assert "<strong>Go</strong>" in page
        assert '<span class="ansi-fg2">green</span>' in page
        assert reverse("session_image", args=[project.slug, session.pk, 0, 1, 0]) in page
        assert "?message=2#message-2" in page

    def test_as_plain_text(self, member_client, project):
        session = self.session(project)
        page = member_client.get(reverse("session", args=[project.slug, session.pk]), {"view": "text"}).text
        assert "**Go**" in page
        assert "␛[32mgreen" in page

    def test_an_image_is_served_as_what_it_is(self, member_client, project):
        session = self.session(project)
        address = reverse("session_image", args=[project.slug, session.pk, 0, 1, 0])
        response = member_client.get(address)
        assert response["Content-Type"] == "image/png"
        assert response["X-Content-Type-Options"] == "nosniff"
        assert response.content == base64.b64decode(PIXEL)
        assert member_client.get(address.replace("images/0/", "images/1/")).status_code == 404

    def test_a_damaged_image_is_not_found(self, member_client, project):
        session = self.session(project, pixel=PIXEL[:-3])
        address = reverse("session_image", args=[project.slug, session.pk, 0, 1, 0])
        assert member_client.get(address).status_code == 404

    def test_the_raw_text_is_unchanged(self, member_client, project):
        session = self.session(project)
        address = reverse("session_text", args=[project.slug, session.pk, 2, 0])
        response = member_client.get(address, {"format": "text"})
        assert response["Content-Type"] == "text/plain; charset=utf-8"
        assert response.text == "\x1b[32mgreen\x1b[0m"

    @pytest.mark.slow
    def test_a_long_output_states_its_exact_size_and_opens_rendered(self, member_client, project):
        code = "".join(f"     {n}→x = {n}\n" for n in range(1, 1_201))
        session = self.session(project, output=code, name="Read", file_path="a.py")
        page = member_client.get(reverse("session", args=[project.slug, session.pk])).text
        tokens = session.messages.get(position=2).tokens
        assert f"Show all 1,201 lines ({tokens:,} tokens)" in " ".join(page.split())
        whole = member_client.get(reverse("session_text", args=[project.slug, session.pk, 2, 0])).text
        assert '<span class="hl-mi">1200</span>' in whole
        assert "x = 1200" in strip_tags(whole)


@pytest.mark.slow
def test_no_code_takes_long_to_highlight() -> None:
    started = time.process_time()
    for language, text in [
        ("bash", "$'" + "\\" * 100),
        ("python", '"%' + "0" * 19_000),
        ("c", "a" + "\n" * 19_000),
        ("ruby", "<<" + "_" * 19_000),
        ("ocaml", "0" * 19_000),
        ("ini", "=" * 19_000),
        (language_of("setup.cfg"), "=" * 19_000),
        ("markdown", f"```ocaml\n{'0' * 19_000}\n```\n"),
        ("basemake", "(" * 19_000),
    ]:
        assert unescape(strip_tags(code_html(text, language))) == text
    assert time.process_time() - started < 2
