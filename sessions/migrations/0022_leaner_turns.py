"""Turns say their components as numbers, messages have no hash of their own, and bodies stay in the row.

Rewrites the table of turns, which is locked meanwhile; the rest is quick. Messages that are stored already
stay as they are.
"""

import django.contrib.postgres.fields
import django.contrib.postgres.indexes
from django.db import migrations, models

NAMES = ("user", "assistant", "tool_outputs", "recap", "system", "tools", "memory")

_COUNTS = ", ".join(f"coalesce((components->>'{name}')::int, 0)" for name in NAMES)
_OBJECT = ", ".join(f"'{name}', nullif(component_tokens[{n}], 0)" for n, name in enumerate(NAMES, start=1))

_TO_NUMBERS = f"""
ALTER TABLE agent_sessions_turn ALTER COLUMN components TYPE integer[]
      USING CASE WHEN components ?| ARRAY['system', 'tools', 'memory'] THEN ARRAY[{_COUNTS}]
                 ELSE trim_array(ARRAY[{_COUNTS}], 3) END;
ALTER TABLE agent_sessions_turn RENAME COLUMN components TO component_tokens;
"""
_TO_OBJECTS = f"""
ALTER TABLE agent_sessions_turn ALTER COLUMN component_tokens TYPE jsonb
      USING jsonb_strip_nulls(jsonb_build_object({_OBJECT}));
ALTER TABLE agent_sessions_turn RENAME COLUMN component_tokens TO components;
"""

# A body of some kilobytes fits a page: as pieces in a table beside it takes more room, and a read more.
# What is written anew at each compaction leaves its old version behind, until somebody takes it away.
_STORAGE = """
ALTER TABLE agent_sessions_message SET (toast_tuple_target = 8160);
ALTER TABLE agent_sessions_recap SET (
      autovacuum_vacuum_threshold = 20, autovacuum_vacuum_scale_factor = 0.05,
      toast.autovacuum_vacuum_threshold = 100, toast.autovacuum_vacuum_scale_factor = 0.05);
ALTER TABLE agent_sessions_promptbase SET (
      autovacuum_vacuum_threshold = 20, autovacuum_vacuum_scale_factor = 0.05,
      toast.autovacuum_vacuum_threshold = 100, toast.autovacuum_vacuum_scale_factor = 0.05);
"""


class Migration(migrations.Migration):
    dependencies = [
        ("agent_sessions", "0021_recap_lines"),
    ]

    operations = [
        migrations.RemoveField(model_name="message", name="content_hash"),
        migrations.RunSQL(
            _TO_NUMBERS,
            _TO_OBJECTS,
            state_operations=[
                migrations.RemoveField(model_name="turn", name="components"),
                migrations.AddField(
                    model_name="turn",
                    name="component_tokens",
                    field=django.contrib.postgres.fields.ArrayField(
                        base_field=models.PositiveIntegerField(), default=list, size=None
                    ),
                ),
            ],
        ),
        migrations.RemoveIndex(model_name="turn", name="turn_response_id"),
        migrations.AddIndex(
            model_name="turn",
            index=django.contrib.postgres.indexes.HashIndex(
                condition=models.Q(("response_id__isnull", False)),
                fields=["response_id"],
                name="turn_response_id",
            ),
        ),
        migrations.RunSQL(_STORAGE, migrations.RunSQL.noop),
    ]
