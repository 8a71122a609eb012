"""Rename the prompt base to prompt snapshot. Dialects are registered in code, not in the database."""

import django.db.models.deletion
from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("agent_sessions", "0001_initial")]

    operations = [
        migrations.RenameModel("PromptBase", "PromptSnapshot"),
        migrations.AlterField(
            model_name="promptsnapshot",
            name="session",
            field=models.OneToOneField(
                on_delete=django.db.models.deletion.CASCADE,
                primary_key=True,
                related_name="prompt_snapshot",
                serialize=False,
                to="agent_sessions.agentsession",
            ),
        ),
        migrations.RenameField("agentsession", "base_end", "snapshot_end"),
        migrations.AlterField("agentsession", "format", models.CharField(max_length=16)),
    ]
