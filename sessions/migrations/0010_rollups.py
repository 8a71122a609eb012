"""The sums of trends: by session and quarter of an hour. The table of before was never filled."""

import django.db.models.deletion
from django.conf import settings
from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [
        migrations.swappable_dependency(settings.AUTH_USER_MODEL),
        ("accounts", "0004_project_defaults"),
        ("agent_sessions", "0009_blob_store"),
    ]

    operations = [
        migrations.AddField(
            model_name="agentsession",
            name="created_by",
            field=models.ForeignKey(
                db_index=False,
                null=True,
                on_delete=django.db.models.deletion.SET_NULL,
                related_name="+",
                to=settings.AUTH_USER_MODEL,
            ),
        ),
        migrations.DeleteModel(name="UsageRollup"),
        migrations.CreateModel(
            name="RollupCursor",
            fields=[
                (
                    "session",
                    models.OneToOneField(
                        on_delete=django.db.models.deletion.CASCADE,
                        primary_key=True,
                        serialize=False,
                        to="agent_sessions.agentsession",
                    ),
                ),
                ("turns", models.PositiveIntegerField()),
            ],
        ),
        migrations.CreateModel(
            name="UsageRollup",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                ("at", models.DateTimeField()),
                ("model", models.CharField(blank=True, max_length=200)),
                ("turns", models.PositiveIntegerField(default=0)),
                ("unpriced_turns", models.PositiveIntegerField(default=0)),
                ("uncached_tokens", models.PositiveBigIntegerField(default=0)),
                ("cache_read_tokens", models.PositiveBigIntegerField(default=0)),
                ("cache_write_tokens", models.PositiveBigIntegerField(default=0)),
                ("output_tokens", models.PositiveBigIntegerField(default=0)),
                ("cost_microusd", models.PositiveBigIntegerField(default=0)),
                ("hidden_tokens", models.PositiveBigIntegerField(default=0)),
                ("saved_microusd", models.PositiveBigIntegerField(default=0)),
                (
                    "project",
                    models.ForeignKey(
                        db_index=False,
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="usage_rollups",
                        to="accounts.project",
                    ),
                ),
                (
                    "session",
                    models.ForeignKey(
                        db_index=False,
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="usage_rollups",
                        to="agent_sessions.agentsession",
                    ),
                ),
            ],
            options={
                "indexes": [models.Index(fields=["project", "at"], name="rollup_span")],
                "constraints": [
                    models.UniqueConstraint(fields=("session", "at", "model"), name="rollup_once")
                ],
            },
        ),
    ]
