"""Edits are written once: what is in force moves to the prompt base, and what nothing read goes.

Quick on large tables but for the one index, whose making holds up compactions while it runs.
"""

import django.contrib.postgres.fields
import django.db.models.deletion
from django.db import migrations, models

_TO_BASES = """
UPDATE agent_sessions_promptbase b SET edits = e.ids
  FROM (SELECT session_id, array_agg(id ORDER BY id) AS ids
          FROM agent_sessions_edit WHERE is_live GROUP BY session_id) e
 WHERE e.session_id = b.session_id
"""
_TO_EDITS = """
UPDATE agent_sessions_edit e SET is_live = FALSE
 WHERE NOT EXISTS (SELECT FROM agent_sessions_promptbase b
                    WHERE b.session_id = e.session_id AND e.id = ANY(b.edits))
"""


class Migration(migrations.Migration):
    dependencies = [
        ("agent_sessions", "0019_memory_reading"),
    ]

    operations = [
        migrations.AddField(
            model_name="promptbase",
            name="edits",
            field=django.contrib.postgres.fields.ArrayField(
                base_field=models.BigIntegerField(), default=list, size=None
            ),
        ),
        migrations.RunSQL(_TO_BASES, _TO_EDITS),
        migrations.RemoveIndex(model_name="edit", name="edit_live"),
        migrations.RemoveIndex(model_name="edit", name="edit_handle"),
        migrations.RemoveField(model_name="edit", name="is_live"),
        migrations.RemoveField(model_name="edit", name="references"),
        migrations.AddIndex(
            model_name="edit",
            index=models.Index(fields=["session", "handle"], name="edit_handle"),
        ),
        migrations.AlterField(
            model_name="edit",
            name="session",
            field=models.ForeignKey(
                db_index=False,
                on_delete=django.db.models.deletion.CASCADE,
                related_name="edits",
                to="agent_sessions.agentsession",
            ),
        ),
    ]
