import django.contrib.postgres.fields
import django.contrib.postgres.indexes
import django.db.models.deletion
import django.utils.timezone
import uuid_utils.compat
from django.conf import settings
from django.db import migrations, models

# Bodies are compressed by the application: Postgres must not try again. A body of a few kilobytes stays in its
# row, which saves a second read. The tables that every push or compaction rewrites are vacuumed early; prompt
# snapshots are small and have room in their page for the next version.
STORAGE = """
ALTER TABLE agent_sessions_message ALTER COLUMN body SET STORAGE EXTERNAL;
ALTER TABLE agent_sessions_message SET (toast_tuple_target = 8160);
ALTER TABLE agent_sessions_blob ALTER COLUMN data SET STORAGE EXTERNAL;
ALTER TABLE agent_sessions_edit ALTER COLUMN text SET STORAGE EXTERNAL;
ALTER TABLE agent_sessions_recap ALTER COLUMN body SET STORAGE EXTERNAL;
ALTER TABLE agent_sessions_recap SET (
    autovacuum_vacuum_threshold = 20, autovacuum_vacuum_scale_factor = 0.05,
    toast.autovacuum_vacuum_threshold = 100, toast.autovacuum_vacuum_scale_factor = 0.05);
ALTER TABLE agent_sessions_promptsnapshot ALTER COLUMN data SET STORAGE EXTERNAL;
ALTER TABLE agent_sessions_promptsnapshot SET (
    fillfactor = 50, toast_tuple_target = 8160,
    autovacuum_vacuum_threshold = 20, autovacuum_vacuum_scale_factor = 0.05,
    toast.autovacuum_vacuum_threshold = 100, toast.autovacuum_vacuum_scale_factor = 0.05);
ALTER TABLE agent_sessions_compaction SET (
    autovacuum_vacuum_threshold = 20, autovacuum_vacuum_scale_factor = 0.05);
ALTER TABLE agent_sessions_agentsession SET (fillfactor = 60,
    autovacuum_vacuum_threshold = 50, autovacuum_vacuum_scale_factor = 0.05);
"""


class Migration(migrations.Migration):
    initial = True

    def apply(self, project_state, schema_editor, collect_sql=False):
        """Create the tables, with the models rendered once: this migration only creates models.

        Django would render the related models again for each new model, which takes seconds.
        """
        if collect_sql:
            return super().apply(project_state, schema_editor, collect_sql)
        project_state.__dict__.pop("apps", None)  # rendered again on the first use
        for operation in self.operations:
            operation.state_forwards(self.app_label, project_state)
        for operation in self.operations:
            operation.database_forwards(self.app_label, schema_editor, project_state, project_state)
        return project_state

    dependencies = [
        ("accounts", "0001_initial"),
        migrations.swappable_dependency(settings.AUTH_USER_MODEL),
    ]

    operations = [
        migrations.CreateModel(
            name="AgentSession",
            fields=[
                (
                    "id",
                    models.UUIDField(
                        default=uuid_utils.compat.uuid7, editable=False, primary_key=True, serialize=False
                    ),
                ),
                ("external_id", models.CharField(max_length=200)),
                ("forked_at", models.IntegerField(null=True)),
                ("title", models.CharField(blank=True, max_length=300)),
                ("notes", models.TextField(blank=True)),
                ("keeps_labels", models.BooleanField(default=False)),
                ("agent", models.CharField(blank=True, max_length=100)),
                ("model", models.CharField(blank=True, max_length=200)),
                ("format", models.CharField(max_length=16, null=True)),
                ("origin", models.CharField(default="api", max_length=32)),
                (
                    "tags",
                    django.contrib.postgres.fields.ArrayField(
                        base_field=models.CharField(max_length=100), default=list, size=None
                    ),
                ),
                ("metadata", models.JSONField(default=dict)),
                ("budget_tokens", models.IntegerField(null=True)),
                ("context_window", models.IntegerField(null=True)),
                ("policy", models.JSONField(default=dict)),
                ("created_at", models.DateTimeField(default=django.utils.timezone.now)),
                ("started_at", models.DateTimeField(default=django.utils.timezone.now)),
                ("last_active_at", models.DateTimeField(default=django.utils.timezone.now)),
                ("turn_count", models.IntegerField(default=0)),
                ("message_count", models.IntegerField(default=0)),
                ("context_start", models.IntegerField(default=0)),
                ("context_components", models.JSONField(default=dict)),
                ("shown_components", models.JSONField(default=dict)),
                ("push_position", models.IntegerField(default=0)),
                ("snapshot_end", models.IntegerField(default=0)),
                ("needs_repair", models.BooleanField(default=False)),
                (
                    "open_calls",
                    django.contrib.postgres.fields.ArrayField(
                        base_field=models.TextField(), default=list, size=None
                    ),
                ),
                ("calibration", models.JSONField(default=dict)),
                ("fired_tokens", models.IntegerField(null=True)),
                ("fired_turn", models.IntegerField(null=True)),
                ("plan_turn", models.IntegerField(null=True)),
                ("failures", models.SmallIntegerField(default=0)),
                ("failed_at", models.DateTimeField(null=True)),
                ("preamble_hash", models.BinaryField(max_length=16, null=True)),
                ("preamble_version", models.SmallIntegerField(default=0)),
                ("compaction_count", models.IntegerField(default=0)),
                ("edits_revision", models.IntegerField(default=0)),
                ("last_prompt_tokens", models.IntegerField(default=0)),
                ("peak_prompt_tokens", models.IntegerField(default=0)),
                ("uncached_tokens", models.BigIntegerField(default=0)),
                ("cache_read_tokens", models.BigIntegerField(default=0)),
                ("cache_write_tokens", models.BigIntegerField(default=0)),
                ("output_tokens", models.BigIntegerField(default=0)),
                ("cost_microusd", models.BigIntegerField(default=0)),
                ("unpriced_turns", models.IntegerField(default=0)),
                (
                    "created_by",
                    models.ForeignKey(
                        db_index=False,
                        null=True,
                        on_delete=django.db.models.deletion.SET_NULL,
                        related_name="+",
                        to=settings.AUTH_USER_MODEL,
                    ),
                ),
                (
                    "parent",
                    models.ForeignKey(
                        db_index=False,
                        null=True,
                        on_delete=django.db.models.deletion.SET_NULL,
                        related_name="children",
                        to="agent_sessions.agentsession",
                    ),
                ),
                (
                    "project",
                    models.ForeignKey(
                        db_index=False,
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="agent_sessions",
                        to="accounts.project",
                    ),
                ),
            ],
            options={
                "indexes": [
                    models.Index(fields=["project", "-last_active_at", "-id"], name="session_newest"),
                    models.Index(fields=["parent"], name="session_parent"),
                    django.contrib.postgres.indexes.GinIndex(fields=["tags"], name="session_tags"),
                    django.contrib.postgres.indexes.GinIndex(
                        fields=["metadata"], name="session_metadata", opclasses=["jsonb_path_ops"]
                    ),
                    models.Index(
                        condition=models.Q(("policy__has_key", "idle_seconds")),
                        fields=["last_active_at"],
                        name="session_idle",
                    ),
                ],
                "constraints": [
                    models.UniqueConstraint(fields=("project", "external_id"), name="session_external_id")
                ],
            },
        ),
        migrations.CreateModel(
            name="ClientHistory",
            fields=[
                (
                    "session",
                    models.OneToOneField(
                        on_delete=django.db.models.deletion.CASCADE,
                        primary_key=True,
                        related_name="client_history",
                        serialize=False,
                        to="agent_sessions.agentsession",
                    ),
                ),
                ("spans", models.JSONField(default=list)),
                ("count", models.PositiveIntegerField(default=0)),
                ("digest", models.BinaryField(max_length=8)),
                ("prefix_count", models.PositiveIntegerField(default=0)),
                ("prefix_bytes", models.PositiveIntegerField(default=0)),
                ("prefix_hash", models.BinaryField(default=b"", max_length=16)),
                ("prefix_digest", models.BinaryField(default=b"", max_length=8)),
                ("preamble_hash", models.BinaryField(default=b"", max_length=16)),
                ("caller", models.BinaryField(max_length=16, null=True)),
                ("conversation", models.CharField(blank=True, max_length=150)),
                ("updated_at", models.DateTimeField(default=django.utils.timezone.now)),
                (
                    "root",
                    models.ForeignKey(
                        db_index=False,
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="+",
                        to="agent_sessions.agentsession",
                    ),
                ),
            ],
            options={
                "indexes": [
                    models.Index(fields=["root", "-updated_at"], name="client_history_root"),
                    models.Index(
                        condition=models.Q(("caller__isnull", False)),
                        fields=["caller", "digest"],
                        name="client_history_caller",
                    ),
                ],
            },
        ),
        migrations.CreateModel(
            name="MemoryExtractionState",
            fields=[
                ("attempts", models.PositiveIntegerField(default=0)),
                ("lease_until", models.DateTimeField(null=True)),
                (
                    "session",
                    models.OneToOneField(
                        on_delete=django.db.models.deletion.CASCADE,
                        primary_key=True,
                        related_name="memory_extraction_state",
                        serialize=False,
                        to="agent_sessions.agentsession",
                    ),
                ),
                ("turn", models.PositiveIntegerField(default=0)),
                ("last_error", models.TextField(blank=True)),
                ("read_at", models.DateTimeField(null=True)),
                ("dismissed", models.BinaryField(null=True)),
                ("revision", models.PositiveIntegerField(default=0)),
            ],
            options={
                "abstract": False,
            },
        ),
        migrations.CreateModel(
            name="MemoryUpdateState",
            fields=[
                (
                    "session",
                    models.OneToOneField(
                        on_delete=django.db.models.deletion.CASCADE,
                        primary_key=True,
                        related_name="memory_update_state",
                        serialize=False,
                        to="agent_sessions.agentsession",
                    ),
                ),
                ("turn", models.PositiveIntegerField(default=0)),
                ("data", models.BinaryField()),
            ],
        ),
        migrations.CreateModel(
            name="ServedPrompt",
            fields=[
                (
                    "session",
                    models.OneToOneField(
                        db_constraint=False,
                        on_delete=django.db.models.deletion.CASCADE,
                        primary_key=True,
                        related_name="served_prompt",
                        serialize=False,
                        to="agent_sessions.agentsession",
                    ),
                ),
                ("turn", models.IntegerField()),
                ("edits_revision", models.IntegerField()),
            ],
        ),
        migrations.CreateModel(
            name="PromptSnapshot",
            fields=[
                (
                    "session",
                    models.OneToOneField(
                        on_delete=django.db.models.deletion.CASCADE,
                        primary_key=True,
                        related_name="prompt_snapshot",
                        serialize=False,
                        to="agent_sessions.agentsession",
                    ),
                ),
                ("compaction_number", models.IntegerField()),
                ("data", models.BinaryField()),
                ("text_edit", models.BigIntegerField(null=True)),
                (
                    "edits",
                    django.contrib.postgres.fields.ArrayField(
                        base_field=models.BigIntegerField(), default=list, size=None
                    ),
                ),
            ],
        ),
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
            name="TurnStretch",
            fields=[
                (
                    "pk",
                    models.CompositePrimaryKey(
                        "session_id",
                        "number",
                        blank=True,
                        editable=False,
                        primary_key=True,
                        serialize=False,
                    ),
                ),
                ("number", models.PositiveIntegerField()),
                (
                    "extremes",
                    django.contrib.postgres.fields.ArrayField(
                        base_field=models.BigIntegerField(null=True), size=None
                    ),
                ),
                (
                    "growths",
                    django.contrib.postgres.fields.ArrayField(base_field=models.BigIntegerField(), size=None),
                ),
                (
                    "costs",
                    django.contrib.postgres.fields.ArrayField(base_field=models.BigIntegerField(), size=None),
                ),
                (
                    "pauses",
                    django.contrib.postgres.fields.ArrayField(base_field=models.BigIntegerField(), size=None),
                ),
                (
                    "misses",
                    django.contrib.postgres.fields.ArrayField(base_field=models.BigIntegerField(), size=None),
                ),
                (
                    "missed_after",
                    django.contrib.postgres.fields.ArrayField(base_field=models.IntegerField(), size=None),
                ),
                (
                    "marked",
                    django.contrib.postgres.fields.ArrayField(base_field=models.IntegerField(), size=None),
                ),
                ("estimated_outputs", models.PositiveIntegerField()),
                ("first_position", models.IntegerField()),
                ("end_position", models.IntegerField()),
                ("message_count", models.IntegerField()),
                ("message_tokens", models.BigIntegerField()),
                ("system_tokens", models.BigIntegerField()),
                (
                    "session",
                    models.ForeignKey(
                        db_index=False,
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="turn_stretches",
                        to="agent_sessions.agentsession",
                    ),
                ),
            ],
        ),
        migrations.CreateModel(
            name="SessionProfile",
            fields=[
                (
                    "session",
                    models.OneToOneField(
                        on_delete=django.db.models.deletion.CASCADE,
                        primary_key=True,
                        related_name="profile",
                        serialize=False,
                        to="agent_sessions.agentsession",
                    ),
                ),
                ("turn_count", models.PositiveIntegerField()),
                ("edits_revision", models.PositiveIntegerField()),
                ("lost_references", models.PositiveIntegerField(default=0)),
                (
                    "sparkline",
                    django.contrib.postgres.fields.ArrayField(
                        base_field=models.PositiveIntegerField(), default=list, size=None
                    ),
                ),
                ("grade", models.CharField(blank=True, max_length=1)),
                ("score", models.PositiveSmallIntegerField(null=True)),
                ("reasons", models.JSONField(default=list)),
                ("updated_at", models.DateTimeField(default=django.utils.timezone.now)),
            ],
        ),
        migrations.CreateModel(
            name="Blob",
            fields=[
                (
                    "id",
                    models.UUIDField(
                        default=uuid_utils.compat.uuid7, editable=False, primary_key=True, serialize=False
                    ),
                ),
                ("sha256", models.BinaryField(max_length=32)),
                ("size", models.IntegerField()),
                ("data", models.BinaryField(null=True)),
                (
                    "project",
                    models.ForeignKey(
                        db_index=False,
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="blobs",
                        to="accounts.project",
                    ),
                ),
            ],
            options={
                "constraints": [models.UniqueConstraint(fields=("project", "sha256"), name="blob_once")],
            },
        ),
        migrations.CreateModel(
            name="Compaction",
            fields=[
                ("attempts", models.PositiveIntegerField(default=0)),
                ("lease_until", models.DateTimeField(null=True)),
                (
                    "id",
                    models.UUIDField(
                        default=uuid_utils.compat.uuid7, editable=False, primary_key=True, serialize=False
                    ),
                ),
                ("number", models.PositiveIntegerField()),
                (
                    "state",
                    models.CharField(
                        choices=[
                            ("pending", "Pending"),
                            ("running", "Running"),
                            ("done", "Done"),
                            ("skipped", "Skipped"),
                            ("failed", "Failed"),
                            ("reverted", "Reverted"),
                        ],
                        default="pending",
                        max_length=16,
                    ),
                ),
                ("trigger", models.CharField(max_length=32)),
                ("reason", models.TextField(blank=True)),
                ("instructions", models.TextField(blank=True)),
                ("turn_index", models.PositiveIntegerField()),
                ("first_turn", models.PositiveIntegerField(null=True)),
                ("reverted_turn", models.PositiveIntegerField(null=True)),
                ("snapshot_position", models.PositiveIntegerField()),
                ("policy", models.BinaryField()),
                ("tokens_before", models.PositiveIntegerField(null=True)),
                ("tokens_after", models.PositiveIntegerField(null=True)),
                ("facts", models.JSONField(default=dict)),
                ("details", models.BinaryField()),
                ("cost_microusd", models.PositiveBigIntegerField(null=True)),
                ("dispatched_at", models.DateTimeField(null=True)),
                ("awaits_upgrade", models.BooleanField(default=False)),
                ("created_at", models.DateTimeField(default=django.utils.timezone.now)),
                ("started_at", models.DateTimeField(null=True)),
                ("finished_at", models.DateTimeField(null=True)),
                (
                    "session",
                    models.ForeignKey(
                        db_index=False,
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="compactions",
                        to="agent_sessions.agentsession",
                    ),
                ),
                (
                    "upgrades",
                    models.ForeignKey(
                        null=True,
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="upgraded_by",
                        to="agent_sessions.compaction",
                    ),
                ),
            ],
            options={
                "indexes": [
                    models.Index(
                        condition=models.Q(("state__in", ["pending", "running"])),
                        fields=["created_at"],
                        name="compaction_open",
                    ),
                    models.Index(fields=["finished_at"], name="compaction_finished"),
                    models.Index(
                        condition=models.Q(("awaits_upgrade", True)),
                        fields=["finished_at"],
                        name="compaction_upgrade",
                    ),
                ],
                "constraints": [
                    models.UniqueConstraint(fields=("session", "number"), name="compaction_number"),
                    models.UniqueConstraint(
                        condition=models.Q(("state__in", ["pending", "running"])),
                        fields=("session",),
                        name="compaction_one_open",
                    ),
                ],
            },
        ),
        migrations.CreateModel(
            name="SharedLink",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                ("token_hash", models.BinaryField(max_length=32, unique=True)),
                ("created_at", models.DateTimeField(default=django.utils.timezone.now)),
                ("expires_at", models.DateTimeField()),
                ("shows_comments", models.BooleanField(default=False)),
                (
                    "created_by",
                    models.ForeignKey(
                        db_index=False,
                        null=True,
                        on_delete=django.db.models.deletion.SET_NULL,
                        related_name="+",
                        to=settings.AUTH_USER_MODEL,
                    ),
                ),
                (
                    "session",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="shared_links",
                        to="agent_sessions.agentsession",
                    ),
                ),
            ],
        ),
        migrations.CreateModel(
            name="Comment",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                ("turn", models.IntegerField()),
                ("imported_author", models.CharField(blank=True, max_length=200)),
                ("text", models.TextField()),
                ("created_at", models.DateTimeField(default=django.utils.timezone.now)),
                ("edited_at", models.DateTimeField(null=True)),
                (
                    "author",
                    models.ForeignKey(
                        null=True,
                        on_delete=django.db.models.deletion.SET_NULL,
                        related_name="+",
                        to=settings.AUTH_USER_MODEL,
                    ),
                ),
                (
                    "session",
                    models.ForeignKey(
                        db_index=False,
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="comments",
                        to="agent_sessions.agentsession",
                    ),
                ),
            ],
            options={
                "indexes": [models.Index(fields=["session", "turn", "id"], name="comment_turn")],
            },
        ),
        migrations.CreateModel(
            name="CostBudget",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                (
                    "period",
                    models.CharField(
                        choices=[("day", "Day"), ("week", "Week"), ("month", "Month")], max_length=8
                    ),
                ),
                (
                    "scope",
                    models.CharField(
                        choices=[
                            ("project", "the whole project"),
                            ("agent", "agent"),
                            ("model", "model"),
                            ("tag", "tag"),
                            ("member", "member"),
                        ],
                        default="project",
                        max_length=8,
                    ),
                ),
                ("scope_value", models.CharField(blank=True, max_length=200)),
                ("limit_microusd", models.PositiveBigIntegerField()),
                ("time_zone", models.CharField(default="UTC", max_length=64)),
                (
                    "emails",
                    django.contrib.postgres.fields.ArrayField(
                        base_field=models.EmailField(max_length=254), default=list, size=None
                    ),
                ),
                ("created_at", models.DateTimeField(default=django.utils.timezone.now)),
                (
                    "project",
                    models.ForeignKey(
                        db_index=False,
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="cost_budgets",
                        to="accounts.project",
                    ),
                ),
            ],
            options={
                "constraints": [
                    models.UniqueConstraint(
                        fields=("project", "period", "scope", "scope_value"), name="budget_period"
                    )
                ],
            },
        ),
        migrations.CreateModel(
            name="BudgetAlert",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                ("starts", models.DateField()),
                ("share", models.PositiveSmallIntegerField()),
                ("limit_microusd", models.PositiveBigIntegerField()),
                ("spent_microusd", models.PositiveBigIntegerField()),
                ("at", models.DateTimeField(default=django.utils.timezone.now)),
                ("mail_pending", models.BooleanField(default=False)),
                ("mail_attempts", models.PositiveSmallIntegerField(default=0)),
                (
                    "budget",
                    models.ForeignKey(
                        db_index=False,
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="alerts",
                        to="agent_sessions.costbudget",
                    ),
                ),
            ],
            options={
                "indexes": [
                    models.Index(
                        condition=models.Q(("mail_pending", True)), fields=["at"], name="alert_mail_pending"
                    )
                ],
                "constraints": [
                    models.UniqueConstraint(
                        fields=("budget", "starts", "limit_microusd", "share"), name="alert_once"
                    )
                ],
            },
        ),
        migrations.CreateModel(
            name="Edit",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                ("ordinal", models.PositiveIntegerField()),
                ("strategy", models.CharField(max_length=32)),
                ("op", models.CharField(max_length=16)),
                ("position", models.PositiveIntegerField()),
                ("end", models.PositiveIntegerField()),
                ("part", models.PositiveSmallIntegerField(null=True)),
                ("text", models.BinaryField(default=b"")),
                (
                    "bases",
                    django.contrib.postgres.fields.ArrayField(
                        base_field=models.BigIntegerField(), null=True, size=None
                    ),
                ),
                ("handle", models.CharField(max_length=64, null=True)),
                ("reason", models.TextField(blank=True)),
                ("tokens_before", models.PositiveIntegerField()),
                ("tokens_after", models.PositiveIntegerField()),
                ("referenced_turn", models.PositiveIntegerField(null=True)),
                ("referenced_text", models.TextField(blank=True)),
                ("tool", models.CharField(blank=True, default="", max_length=200)),
                ("referenced_how", models.CharField(blank=True, default="", max_length=16)),
                (
                    "compaction",
                    models.ForeignKey(
                        db_index=False,
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="edits",
                        to="agent_sessions.compaction",
                    ),
                ),
                (
                    "session",
                    models.ForeignKey(
                        db_index=False,
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="edits",
                        to="agent_sessions.agentsession",
                    ),
                ),
            ],
            options={
                "indexes": [
                    models.Index(fields=["compaction"], name="edit_compaction"),
                    models.Index(fields=["session"], name="edit_session"),
                ],
            },
        ),
        migrations.CreateModel(
            name="ImportedLog",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                ("digest", models.BinaryField(max_length=32)),
                ("sessions", models.PositiveIntegerField()),
                ("created_at", models.DateTimeField(default=django.utils.timezone.now)),
                (
                    "session",
                    models.ForeignKey(
                        db_index=False,
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="imported_logs",
                        to="agent_sessions.agentsession",
                    ),
                ),
            ],
            options={
                "constraints": [
                    models.UniqueConstraint(fields=("session", "digest"), name="imported_log_once")
                ],
            },
        ),
        migrations.CreateModel(
            name="MemoryExtraction",
            fields=[
                (
                    "id",
                    models.UUIDField(
                        default=uuid_utils.compat.uuid7, editable=False, primary_key=True, serialize=False
                    ),
                ),
                ("at", models.DateTimeField(default=django.utils.timezone.now)),
                ("model", models.CharField(max_length=200)),
                ("first_turn", models.PositiveIntegerField()),
                ("end_turn", models.PositiveIntegerField()),
                (
                    "state",
                    models.CharField(
                        choices=[
                            ("done", "Done"),
                            ("failed", "Failed"),
                            ("given_up", "Given Up"),
                            ("superseded", "Superseded"),
                        ],
                        max_length=16,
                    ),
                ),
                ("reason", models.TextField(blank=True)),
                ("revision", models.PositiveIntegerField(null=True)),
                ("requests", models.PositiveSmallIntegerField()),
                ("uncached_tokens", models.PositiveIntegerField()),
                ("cache_read_tokens", models.PositiveIntegerField()),
                ("cache_write_tokens", models.PositiveIntegerField()),
                ("output_tokens", models.PositiveIntegerField()),
                ("cost_microusd", models.PositiveBigIntegerField(null=True)),
                (
                    "session",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="memory_extractions",
                        to="agent_sessions.agentsession",
                    ),
                ),
            ],
            options={
                "indexes": [models.Index(fields=["at"], name="memory_extraction_at")],
            },
        ),
        migrations.CreateModel(
            name="MemoryRevision",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                ("number", models.PositiveIntegerField()),
                ("turn_index", models.PositiveIntegerField()),
                (
                    "author",
                    models.CharField(
                        choices=[("model", "Model"), ("harness", "Harness"), ("person", "Person")],
                        max_length=16,
                    ),
                ),
                ("reason", models.TextField(blank=True)),
                ("body", models.BinaryField()),
                ("origins", models.BinaryField(null=True)),
                ("tokens", models.PositiveIntegerField()),
                ("created_at", models.DateTimeField(default=django.utils.timezone.now)),
                (
                    "session",
                    models.ForeignKey(
                        db_index=False,
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="memory_revisions",
                        to="agent_sessions.agentsession",
                    ),
                ),
            ],
            options={
                "constraints": [
                    models.UniqueConstraint(fields=("session", "number"), name="memory_revision_number")
                ],
            },
        ),
        migrations.CreateModel(
            name="Message",
            fields=[
                (
                    "pk",
                    models.CompositePrimaryKey(
                        "session_id",
                        "position",
                        blank=True,
                        editable=False,
                        primary_key=True,
                        serialize=False,
                    ),
                ),
                (
                    "session",
                    models.ForeignKey(
                        db_index=False,
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="messages",
                        to="agent_sessions.agentsession",
                    ),
                ),
                ("position", models.IntegerField()),
                ("turn_index", models.IntegerField()),
                ("tokens", models.IntegerField()),
                ("flags", models.SmallIntegerField(default=0)),
                ("role", models.CharField(max_length=16)),
                ("tool_name", models.CharField(blank=True, max_length=200)),
                ("source_id", models.CharField(max_length=200, null=True)),
                ("content_hash", models.BinaryField(max_length=8, null=True)),
                (
                    "blob",
                    models.ForeignKey(
                        db_index=False,
                        null=True,
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="messages",
                        to="agent_sessions.blob",
                    ),
                ),
                ("body", models.BinaryField(null=True)),
            ],
            options={
                "indexes": [
                    models.Index(
                        condition=models.Q(("blob__isnull", False)), fields=["blob"], name="message_blob"
                    )
                ],
                "constraints": [
                    models.CheckConstraint(
                        condition=models.Q(
                            ("body__isnull", False), ("blob__isnull", False), _connector="XOR"
                        ),
                        name="message_body_or_blob",
                    )
                ],
            },
        ),
        migrations.CreateModel(
            name="Preamble",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                ("version", models.SmallIntegerField()),
                ("from_turn", models.IntegerField()),
                ("system", models.BinaryField(null=True)),
                ("tools", models.BinaryField(null=True)),
                ("system_tokens", models.IntegerField(default=0)),
                ("tools_tokens", models.IntegerField(default=0)),
                (
                    "session",
                    models.ForeignKey(
                        db_index=False,
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="preambles",
                        to="agent_sessions.agentsession",
                    ),
                ),
            ],
            options={
                "constraints": [
                    models.UniqueConstraint(fields=("session", "version"), name="preamble_version")
                ],
            },
        ),
        migrations.CreateModel(
            name="Recap",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                ("version", models.PositiveSmallIntegerField(default=1)),
                (
                    "author",
                    models.CharField(
                        choices=[("model", "Model"), ("extractor", "Extractor"), ("person", "Person")],
                        max_length=16,
                    ),
                ),
                ("model", models.CharField(blank=True, max_length=200)),
                ("lines", models.BinaryField(null=True)),
                ("edit_ordinal", models.PositiveIntegerField(null=True)),
                ("body", models.BinaryField(null=True)),
                ("tokens", models.PositiveIntegerField()),
                ("created_at", models.DateTimeField(default=django.utils.timezone.now)),
                (
                    "compaction",
                    models.ForeignKey(
                        db_index=False,
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="recaps",
                        to="agent_sessions.compaction",
                    ),
                ),
            ],
            options={
                "constraints": [
                    models.UniqueConstraint(fields=("compaction", "version"), name="recap_version")
                ],
            },
        ),
        migrations.CreateModel(
            name="SavedView",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                (
                    "page",
                    models.CharField(
                        choices=[("sessions", "Sessions"), ("trends", "Trends")],
                        default="sessions",
                        max_length=16,
                    ),
                ),
                ("name", models.CharField(max_length=80)),
                ("query", models.CharField(max_length=1000)),
                (
                    "project",
                    models.ForeignKey(
                        db_index=False,
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="saved_views",
                        to="accounts.project",
                    ),
                ),
                (
                    "user",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="saved_views",
                        to=settings.AUTH_USER_MODEL,
                    ),
                ),
            ],
            options={
                "constraints": [
                    models.UniqueConstraint(
                        fields=("project", "user", "page", "name"), name="saved_view_name"
                    )
                ],
            },
        ),
        migrations.CreateModel(
            name="SharedFact",
            fields=[
                (
                    "id",
                    models.UUIDField(
                        default=uuid_utils.compat.uuid7, editable=False, primary_key=True, serialize=False
                    ),
                ),
                ("agent", models.CharField(blank=True, max_length=100)),
                ("field", models.CharField(max_length=40)),
                ("text", models.TextField()),
                ("digest", models.BinaryField(max_length=16)),
                ("proposed_digest", models.BinaryField(max_length=16)),
                (
                    "state",
                    models.CharField(
                        choices=[
                            ("proposed", "Proposed"),
                            ("accepted", "Accepted"),
                            ("rejected", "Rejected"),
                        ],
                        default="proposed",
                        max_length=16,
                    ),
                ),
                ("revision", models.PositiveIntegerField(null=True)),
                ("seen_in", models.PositiveIntegerField(default=0)),
                ("seen_at", models.DateTimeField(default=django.utils.timezone.now)),
                ("created_at", models.DateTimeField(default=django.utils.timezone.now)),
                ("decided_at", models.DateTimeField(null=True)),
                ("confirmed_at", models.DateTimeField(default=django.utils.timezone.now)),
                ("expires_at", models.DateTimeField(null=True)),
                (
                    "decided_by",
                    models.ForeignKey(
                        null=True, on_delete=django.db.models.deletion.SET_NULL, to=settings.AUTH_USER_MODEL
                    ),
                ),
                (
                    "project",
                    models.ForeignKey(
                        db_index=False,
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="shared_facts",
                        to="accounts.project",
                    ),
                ),
                (
                    "session",
                    models.ForeignKey(
                        null=True,
                        on_delete=django.db.models.deletion.SET_NULL,
                        related_name="shared_facts",
                        to="agent_sessions.agentsession",
                    ),
                ),
            ],
            options={
                "indexes": [
                    models.Index(fields=["project", "state", "-created_at"], name="shared_fact_state"),
                    models.Index(fields=["project", "state", "-seen_in", "-id"], name="shared_fact_review"),
                    models.Index(fields=["project", "agent", "proposed_digest"], name="shared_fact_proposed"),
                ],
                "constraints": [
                    models.UniqueConstraint(fields=("project", "agent", "digest"), name="shared_fact_once")
                ],
            },
        ),
        migrations.CreateModel(
            name="FactObservation",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                ("revision", models.PositiveIntegerField()),
                ("digest", models.BinaryField(max_length=16)),
                ("stale", models.TextField(blank=True)),
                ("removed", models.CharField(blank=True, max_length=100)),
                ("seen_at", models.DateTimeField(default=django.utils.timezone.now)),
                (
                    "session",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="fact_observations",
                        to="agent_sessions.agentsession",
                    ),
                ),
                (
                    "fact",
                    models.ForeignKey(
                        db_index=False,
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="observations",
                        to="agent_sessions.sharedfact",
                    ),
                ),
            ],
            options={
                "constraints": [
                    models.UniqueConstraint(fields=("fact", "session"), name="fact_observation_once")
                ],
            },
        ),
        migrations.CreateModel(
            name="Turn",
            fields=[
                (
                    "pk",
                    models.CompositePrimaryKey(
                        "session_id", "index", blank=True, editable=False, primary_key=True, serialize=False
                    ),
                ),
                (
                    "session",
                    models.ForeignKey(
                        db_index=False,
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="turns",
                        to="agent_sessions.agentsession",
                    ),
                ),
                # Ordered so that Postgres does not pad the columns for alignment.
                ("at", models.DateTimeField(default=django.utils.timezone.now)),
                ("cost_microusd", models.BigIntegerField(null=True)),
                ("calibration_factor", models.FloatField(null=True)),
                ("index", models.IntegerField()),
                ("first_position", models.IntegerField()),
                ("message_count", models.IntegerField()),
                ("prompt_estimate", models.IntegerField()),
                ("prompt_reported", models.IntegerField(null=True)),
                ("prompt_served", models.IntegerField(null=True)),
                ("uncached_tokens", models.IntegerField(null=True)),
                ("cache_read_tokens", models.IntegerField(null=True)),
                ("cache_write_tokens", models.IntegerField(null=True)),
                ("output_tokens", models.IntegerField(null=True)),
                ("output_reported", models.IntegerField(null=True)),
                ("first_token_ms", models.IntegerField(null=True)),
                ("duration_ms", models.IntegerField(null=True)),
                ("calibration_overhead", models.IntegerField(null=True)),
                ("budget", models.IntegerField(null=True)),
                ("output_spike", models.IntegerField(null=True)),
                ("preamble_version", models.SmallIntegerField(default=0)),
                ("billed", models.BooleanField(default=True)),
                ("component_tokens", models.BinaryField(default=b"")),
                ("model", models.CharField(blank=True, max_length=200)),
                (
                    "source",
                    models.CharField(
                        choices=[
                            ("push", "a push or reconciliation over the API"),
                            ("gateway", "the gateway"),
                            ("telemetry", "telemetry"),
                            ("log", "an imported log"),
                        ],
                        default="push",
                        max_length=12,
                    ),
                ),
                ("idempotency_key", models.CharField(max_length=200, null=True)),
                ("body_hash", models.BinaryField(max_length=32, null=True)),
                ("answer", models.BinaryField(null=True)),
                ("response_id", models.CharField(max_length=200, null=True)),
                ("request_id", models.CharField(max_length=200, null=True)),
                ("client_compaction", models.JSONField(null=True)),
            ],
            options={
                "indexes": [
                    models.Index(
                        condition=models.Q(("response_id__isnull", False)),
                        fields=["response_id"],
                        name="turn_response_id",
                    ),
                    models.Index(
                        condition=models.Q(("request_id__isnull", False)),
                        fields=["request_id"],
                        name="turn_request_id",
                    ),
                ],
                "constraints": [
                    models.UniqueConstraint(
                        condition=models.Q(("idempotency_key__isnull", False)),
                        fields=("session", "idempotency_key"),
                        name="turn_idempotency_key",
                    )
                ],
            },
        ),
        migrations.CreateModel(
            name="UsageRollup",
            fields=[
                (
                    "pk",
                    models.CompositePrimaryKey(
                        "session_id",
                        "at",
                        "model",
                        blank=True,
                        editable=False,
                        primary_key=True,
                        serialize=False,
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
                ("client_compactions", models.PositiveIntegerField(default=0)),
                (
                    "project",
                    models.ForeignKey(
                        db_index=False,
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="+",
                        to="accounts.project",
                    ),
                ),
                (
                    "session",
                    models.ForeignKey(
                        db_index=False,
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="+",
                        to="agent_sessions.agentsession",
                    ),
                ),
            ],
            options={
                "indexes": [models.Index(fields=["project", "at"], name="rollup_span")],
            },
        ),
        migrations.CreateModel(
            name="DailyUsage",
            fields=[
                (
                    "pk",
                    models.CompositePrimaryKey(
                        "session_id",
                        "at",
                        "model",
                        blank=True,
                        editable=False,
                        primary_key=True,
                        serialize=False,
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
                ("client_compactions", models.PositiveIntegerField(default=0)),
                (
                    "project",
                    models.ForeignKey(
                        db_index=False,
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="+",
                        to="accounts.project",
                    ),
                ),
                (
                    "session",
                    models.ForeignKey(
                        db_index=False,
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="+",
                        to="agent_sessions.agentsession",
                    ),
                ),
            ],
            options={
                "indexes": [models.Index(fields=["project", "at"], name="daily_usage_span")],
            },
        ),
        migrations.CreateModel(
            name="Webhook",
            fields=[
                (
                    "id",
                    models.UUIDField(
                        default=uuid_utils.compat.uuid7, editable=False, primary_key=True, serialize=False
                    ),
                ),
                ("url", models.CharField(max_length=2000)),
                ("secret", models.CharField(max_length=100)),
                (
                    "events",
                    django.contrib.postgres.fields.ArrayField(
                        base_field=models.CharField(
                            choices=[
                                ("compaction.started", "a compaction starts"),
                                ("compaction.finished", "a compaction ends, with any result"),
                                ("tool_output.spike", "tool outputs of a turn are far larger than usual"),
                                ("budget.reached", "spending reaches a share of a budget"),
                            ],
                            max_length=32,
                        ),
                        size=None,
                    ),
                ),
                (
                    "format",
                    models.CharField(
                        choices=[
                            ("json", "JSON: the event with its data, signed"),
                            ("slack", "Slack: a message with a link"),
                        ],
                        default="json",
                        max_length=8,
                    ),
                ),
                ("is_active", models.BooleanField(default=True)),
                ("created_at", models.DateTimeField(default=django.utils.timezone.now)),
                (
                    "project",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="webhooks",
                        to="accounts.project",
                    ),
                ),
            ],
            options={
                "indexes": [
                    models.Index(
                        condition=models.Q(("is_active", True)), fields=["project"], name="webhook_active"
                    )
                ],
            },
        ),
        migrations.CreateModel(
            name="WebhookDelivery",
            fields=[
                ("attempts", models.PositiveIntegerField(default=0)),
                ("lease_until", models.DateTimeField(null=True)),
                (
                    "id",
                    models.UUIDField(
                        default=uuid_utils.compat.uuid7, editable=False, primary_key=True, serialize=False
                    ),
                ),
                (
                    "event",
                    models.CharField(
                        choices=[
                            ("compaction.started", "a compaction starts"),
                            ("compaction.finished", "a compaction ends, with any result"),
                            ("tool_output.spike", "tool outputs of a turn are far larger than usual"),
                            ("budget.reached", "spending reaches a share of a budget"),
                        ],
                        max_length=32,
                    ),
                ),
                ("body", models.BinaryField()),
                (
                    "state",
                    models.CharField(
                        choices=[("pending", "Pending"), ("sent", "Sent"), ("failed", "Failed")],
                        default="pending",
                        max_length=16,
                    ),
                ),
                ("status", models.PositiveSmallIntegerField(null=True)),
                ("error", models.CharField(blank=True, max_length=500)),
                ("created_at", models.DateTimeField(default=django.utils.timezone.now)),
                (
                    "compaction",
                    models.ForeignKey(
                        null=True,
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="deliveries",
                        to="agent_sessions.compaction",
                    ),
                ),
                (
                    "webhook",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="deliveries",
                        to="agent_sessions.webhook",
                    ),
                ),
            ],
            options={
                "indexes": [
                    models.Index(
                        models.OrderBy(models.F("lease_until"), nulls_first=True),
                        condition=models.Q(("state", "pending")),
                        name="delivery_pending",
                    ),
                    models.Index(fields=["webhook", "-created_at"], name="delivery_newest"),
                ],
            },
        ),
        migrations.CreateModel(
            name="CallHistogram",
            fields=[
                (
                    "pk",
                    models.CompositePrimaryKey(
                        "session_id",
                        "at",
                        "model",
                        "measure",
                        "slot",
                        blank=True,
                        editable=False,
                        primary_key=True,
                        serialize=False,
                    ),
                ),
                ("at", models.DateTimeField()),
                ("model", models.CharField(blank=True, max_length=200)),
                (
                    "measure",
                    models.CharField(
                        choices=[("first_token", "First"), ("duration", "Duration"), ("prompt", "Prompt")],
                        max_length=16,
                    ),
                ),
                ("slot", models.PositiveSmallIntegerField()),
                ("calls", models.PositiveIntegerField()),
                (
                    "project",
                    models.ForeignKey(
                        db_index=False,
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="call_histograms",
                        to="accounts.project",
                    ),
                ),
                (
                    "session",
                    models.ForeignKey(
                        db_index=False,
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="call_histograms",
                        to="agent_sessions.agentsession",
                    ),
                ),
            ],
            options={
                "indexes": [
                    models.Index(
                        fields=["project", "measure", "at"],
                        include=["slot", "calls"],
                        name="call_histogram_span",
                    )
                ],
            },
        ),
        migrations.CreateModel(
            name="Pin",
            fields=[
                (
                    "pk",
                    models.CompositePrimaryKey(
                        "session_id",
                        "position",
                        blank=True,
                        editable=False,
                        primary_key=True,
                        serialize=False,
                    ),
                ),
                ("position", models.IntegerField()),
                ("at", models.DateTimeField(default=django.utils.timezone.now)),
                (
                    "api_key",
                    models.ForeignKey(
                        db_index=False,
                        null=True,
                        on_delete=django.db.models.deletion.SET_NULL,
                        related_name="+",
                        to="accounts.apikey",
                    ),
                ),
                (
                    "session",
                    models.ForeignKey(
                        db_index=False,
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="pins",
                        to="agent_sessions.agentsession",
                    ),
                ),
                (
                    "user",
                    models.ForeignKey(
                        db_index=False,
                        null=True,
                        on_delete=django.db.models.deletion.SET_NULL,
                        related_name="+",
                        to=settings.AUTH_USER_MODEL,
                    ),
                ),
            ],
        ),
        migrations.CreateModel(
            name="ProposalScan",
            fields=[
                (
                    "session",
                    models.OneToOneField(
                        on_delete=django.db.models.deletion.CASCADE,
                        primary_key=True,
                        related_name="proposal_scan",
                        serialize=False,
                        to="agent_sessions.agentsession",
                    ),
                ),
                ("scan_at", models.DateTimeField()),
            ],
            options={
                "indexes": [models.Index(fields=["scan_at"], name="proposal_scan_at")],
            },
        ),
        migrations.CreateModel(
            name="ReferenceScan",
            fields=[
                ("attempts", models.PositiveIntegerField(default=0)),
                ("lease_until", models.DateTimeField(null=True)),
                (
                    "session",
                    models.OneToOneField(
                        on_delete=django.db.models.deletion.CASCADE,
                        primary_key=True,
                        related_name="reference_scan",
                        serialize=False,
                        to="agent_sessions.agentsession",
                    ),
                ),
                ("position", models.PositiveIntegerField(default=0)),
                ("compaction", models.PositiveIntegerField(default=0)),
                ("reverted", models.PositiveIntegerField(default=0)),
                ("state", models.BinaryField(null=True)),
                ("pause_seconds", models.PositiveIntegerField(default=0)),
            ],
            options={
                "indexes": [
                    models.Index(
                        models.OrderBy(models.F("lease_until"), nulls_first=True), name="reference_scan_next"
                    )
                ],
            },
        ),
        migrations.RunSQL(STORAGE, migrations.RunSQL.noop),
        migrations.CreateModel(
            name="SearchState",
            fields=[
                ("attempts", models.PositiveIntegerField(default=0)),
                ("lease_until", models.DateTimeField(null=True)),
                (
                    "session",
                    models.OneToOneField(
                        on_delete=django.db.models.deletion.CASCADE,
                        primary_key=True,
                        related_name="search_state",
                        serialize=False,
                        to="agent_sessions.agentsession",
                    ),
                ),
                ("position", models.PositiveIntegerField(default=0)),
            ],
            options={"abstract": False},
        ),
        migrations.CreateModel(
            name="SearchSegment",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                ("first", models.PositiveIntegerField()),
                ("end", models.PositiveIntegerField()),
                ("ended_at", models.DateTimeField()),
                ("header", models.BinaryField()),
                (
                    "keys",
                    django.contrib.postgres.fields.ArrayField(base_field=models.IntegerField(), size=None),
                ),
                (
                    "files",
                    django.contrib.postgres.fields.ArrayField(
                        base_field=models.TextField(), default=list, size=None
                    ),
                ),
                (
                    "project",
                    models.ForeignKey(
                        db_index=False,
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="+",
                        to="accounts.project",
                    ),
                ),
                (
                    "session",
                    models.ForeignKey(
                        db_index=False,
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="search_segments",
                        to="agent_sessions.agentsession",
                    ),
                ),
            ],
            options={
                "indexes": [
                    models.Index(fields=["project", "-ended_at"], name="search_segment_newest"),
                    django.contrib.postgres.indexes.GinIndex(
                        fastupdate=True,
                        fields=["keys"],
                        gin_pending_list_limit=1024,
                        name="search_segment_keys",
                    ),
                ],
                "constraints": [
                    models.UniqueConstraint(fields=("session", "first"), name="search_segment_first")
                ],
            },
        ),
        migrations.CreateModel(
            name="SearchBlock",
            fields=[
                (
                    "pk",
                    models.CompositePrimaryKey(
                        "segment_id",
                        "first_term",
                        blank=True,
                        editable=False,
                        primary_key=True,
                        serialize=False,
                    ),
                ),
                ("first_term", models.BinaryField()),
                ("data", models.BinaryField()),
                (
                    "segment",
                    models.ForeignKey(
                        db_index=False,
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="blocks",
                        to="agent_sessions.searchsegment",
                    ),
                ),
            ],
        ),
        migrations.RunSQL(
            "ALTER TABLE agent_sessions_searchsegment SET (toast_tuple_target = 128)", migrations.RunSQL.noop
        ),
        migrations.CreateModel(
            name="ImportJob",
            fields=[
                ("attempts", models.PositiveIntegerField(default=0)),
                ("lease_until", models.DateTimeField(null=True)),
                (
                    "id",
                    models.UUIDField(
                        default=uuid_utils.compat.uuid7, editable=False, primary_key=True, serialize=False
                    ),
                ),
                ("name", models.CharField(max_length=200)),
                ("requested_format", models.CharField(blank=True, max_length=40)),
                ("format", models.CharField(blank=True, max_length=40)),
                ("size", models.PositiveBigIntegerField()),
                (
                    "state",
                    models.CharField(
                        choices=[
                            ("pending", "Pending"),
                            ("running", "Running"),
                            ("done", "Done"),
                            ("failed", "Failed"),
                            ("cancelled", "Cancelled"),
                        ],
                        default="pending",
                        max_length=16,
                    ),
                ),
                ("error_code", models.CharField(blank=True, max_length=40)),
                ("error", models.TextField(blank=True)),
                ("stalls", models.PositiveSmallIntegerField(default=0)),
                ("sessions_total", models.PositiveIntegerField(default=0)),
                ("sessions_done", models.PositiveIntegerField(default=0)),
                ("messages_total", models.PositiveIntegerField(default=0)),
                ("messages_done", models.PositiveIntegerField(default=0)),
                ("digest", models.BinaryField(max_length=32, null=True)),
                ("damages", models.JSONField(default=list)),
                ("damage_count", models.PositiveIntegerField(default=0)),
                ("created_at", models.DateTimeField(default=django.utils.timezone.now)),
                ("finished_at", models.DateTimeField(null=True)),
                (
                    "project",
                    models.ForeignKey(
                        db_index=False,
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="import_jobs",
                        to="accounts.project",
                    ),
                ),
            ],
            options={
                "indexes": [
                    models.Index(fields=["project", "-id"], name="import_job_newest"),
                    models.Index(
                        condition=models.Q(("state__in", ["pending", "running"])),
                        fields=["lease_until"],
                        name="import_job_open",
                    ),
                ],
            },
        ),
        migrations.CreateModel(
            name="ImportJobSession",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                ("ordinal", models.PositiveIntegerField()),
                ("external_id", models.CharField(max_length=200)),
                (
                    "state",
                    models.CharField(
                        choices=[
                            ("partial", "Partial"),
                            ("new", "New"),
                            ("grown", "Grown"),
                            ("unchanged", "Unchanged"),
                            ("conflict", "Conflict"),
                            ("skipped", "Skipped"),
                        ],
                        max_length=16,
                    ),
                ),
                ("log_turns", models.PositiveIntegerField(default=0)),
                ("log_messages", models.PositiveIntegerField(default=0)),
                ("turns", models.PositiveIntegerField(default=0)),
                ("messages", models.PositiveIntegerField(default=0)),
                ("reason", models.TextField(blank=True)),
                ("redacted", models.JSONField(default=dict)),
                (
                    "job",
                    models.ForeignKey(
                        db_index=False,
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="sessions",
                        to="agent_sessions.importjob",
                    ),
                ),
                (
                    "session",
                    models.ForeignKey(
                        null=True,
                        on_delete=django.db.models.deletion.SET_NULL,
                        related_name="+",
                        to="agent_sessions.agentsession",
                    ),
                ),
            ],
            options={
                "constraints": [
                    models.UniqueConstraint(fields=("job", "ordinal"), name="import_job_session_once")
                ],
            },
        ),
        migrations.CreateModel(
            name="ImportPart",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                ("number", models.PositiveIntegerField()),
                ("data", models.BinaryField()),
                (
                    "job",
                    models.ForeignKey(
                        db_index=False,
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="parts",
                        to="agent_sessions.importjob",
                    ),
                ),
            ],
            options={
                "constraints": [models.UniqueConstraint(fields=("job", "number"), name="import_part_once")],
            },
        ),
        migrations.CreateModel(
            name="ImportStep",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                ("ordinal", models.PositiveIntegerField()),
                ("first_turn", models.PositiveIntegerField()),
                ("is_last", models.BooleanField()),
                ("data", models.BinaryField()),
                (
                    "job",
                    models.ForeignKey(
                        db_index=False,
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="steps",
                        to="agent_sessions.importjob",
                    ),
                ),
            ],
            options={
                "constraints": [
                    models.UniqueConstraint(fields=("job", "ordinal", "first_turn"), name="import_step_once")
                ],
            },
        ),
        migrations.RunSQL(
            "ALTER TABLE agent_sessions_importpart ALTER COLUMN data SET STORAGE EXTERNAL;"
            "ALTER TABLE agent_sessions_importstep ALTER COLUMN data SET STORAGE EXTERNAL",
            migrations.RunSQL.noop,
        ),
        migrations.CreateModel(
            name="ToolRun",
            fields=[
                (
                    "pk",
                    models.CompositePrimaryKey(
                        "session_id", "call_id", blank=True, editable=False, primary_key=True, serialize=False
                    ),
                ),
                ("call_id", models.CharField(max_length=200)),
                ("name", models.CharField(blank=True, max_length=200)),
                ("at", models.DateTimeField(default=django.utils.timezone.now)),
                ("duration_ms", models.PositiveIntegerField()),
                ("is_error", models.BooleanField(default=False)),
                (
                    "session",
                    models.ForeignKey(
                        db_index=False,
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="tool_runs",
                        to="agent_sessions.agentsession",
                    ),
                ),
            ],
        ),
        migrations.CreateModel(
            name="ToolScan",
            fields=[
                ("attempts", models.PositiveIntegerField(default=0)),
                ("lease_until", models.DateTimeField(null=True)),
                (
                    "session",
                    models.OneToOneField(
                        on_delete=django.db.models.deletion.CASCADE,
                        primary_key=True,
                        related_name="tool_scan",
                        serialize=False,
                        to="agent_sessions.agentsession",
                    ),
                ),
                ("position", models.PositiveIntegerField(default=0)),
                ("context", models.JSONField(default=dict)),
                ("charged_turn", models.IntegerField(default=-1)),
            ],
            options={
                "abstract": False,
            },
        ),
        migrations.CreateModel(
            name="Star",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                (
                    "session",
                    models.ForeignKey(
                        db_index=False,
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="stars",
                        to="agent_sessions.agentsession",
                    ),
                ),
                (
                    "user",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="+",
                        to=settings.AUTH_USER_MODEL,
                    ),
                ),
            ],
            options={
                "constraints": [models.UniqueConstraint(fields=("session", "user"), name="star_once")],
            },
        ),
        migrations.CreateModel(
            name="DismissedHint",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                ("hint", models.CharField(max_length=40)),
                (
                    "user",
                    models.ForeignKey(
                        db_index=False,
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="+",
                        to=settings.AUTH_USER_MODEL,
                    ),
                ),
            ],
            options={
                "constraints": [models.UniqueConstraint(fields=("user", "hint"), name="dismissed_hint_once")],
            },
        ),
        migrations.CreateModel(
            name="SampleLoad",
            fields=[
                ("attempts", models.PositiveIntegerField(default=0)),
                ("lease_until", models.DateTimeField(null=True)),
                (
                    "project",
                    models.OneToOneField(
                        on_delete=django.db.models.deletion.CASCADE,
                        primary_key=True,
                        related_name="sample_load",
                        serialize=False,
                        to="accounts.project",
                    ),
                ),
                (
                    "state",
                    models.CharField(
                        choices=[("loading", "Loading"), ("done", "Done"), ("failed", "Failed")],
                        default="loading",
                        max_length=16,
                    ),
                ),
                ("total", models.PositiveSmallIntegerField()),
                (
                    "sessions",
                    django.contrib.postgres.fields.ArrayField(
                        base_field=models.UUIDField(), default=list, size=None
                    ),
                ),
                ("created_at", models.DateTimeField(default=django.utils.timezone.now)),
                (
                    "created_by",
                    models.ForeignKey(
                        null=True,
                        on_delete=django.db.models.deletion.SET_NULL,
                        to=settings.AUTH_USER_MODEL,
                    ),
                ),
            ],
            options={
                "abstract": False,
            },
        ),
        migrations.CreateModel(
            name="ToolFile",
            fields=[
                (
                    "pk",
                    models.CompositePrimaryKey(
                        "session_id",
                        "path",
                        "span",
                        blank=True,
                        editable=False,
                        primary_key=True,
                        serialize=False,
                    ),
                ),
                ("path", models.CharField(max_length=400)),
                ("span", models.CharField(blank=True, max_length=200)),
                ("reads", models.PositiveIntegerField()),
                ("tokens", models.PositiveBigIntegerField()),
                ("last_position", models.PositiveIntegerField()),
                (
                    "session",
                    models.ForeignKey(
                        db_index=False,
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="tool_files",
                        to="agent_sessions.agentsession",
                    ),
                ),
            ],
        ),
        migrations.CreateModel(
            name="ToolOutputs",
            fields=[
                (
                    "pk",
                    models.CompositePrimaryKey(
                        "session_id", "number", blank=True, editable=False, primary_key=True, serialize=False
                    ),
                ),
                ("number", models.PositiveIntegerField()),
                (
                    "positions",
                    django.contrib.postgres.fields.ArrayField(base_field=models.IntegerField(), size=None),
                ),
                (
                    "turns",
                    django.contrib.postgres.fields.ArrayField(base_field=models.IntegerField(), size=None),
                ),
                (
                    "tools",
                    django.contrib.postgres.fields.ArrayField(base_field=models.TextField(), size=None),
                ),
                (
                    "tokens",
                    django.contrib.postgres.fields.ArrayField(base_field=models.IntegerField(), size=None),
                ),
                (
                    "errors",
                    django.contrib.postgres.fields.ArrayField(base_field=models.BooleanField(), size=None),
                ),
                (
                    "session",
                    models.ForeignKey(
                        db_index=False,
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="tool_outputs",
                        to="agent_sessions.agentsession",
                    ),
                ),
            ],
        ),
        migrations.CreateModel(
            name="ToolRollup",
            fields=[
                (
                    "pk",
                    models.CompositePrimaryKey(
                        "session_id",
                        "day",
                        "tool",
                        blank=True,
                        editable=False,
                        primary_key=True,
                        serialize=False,
                    ),
                ),
                ("day", models.DateField()),
                ("tool", models.CharField(max_length=200)),
                ("calls", models.PositiveIntegerField(default=0)),
                ("call_tokens", models.PositiveBigIntegerField(default=0)),
                ("outputs", models.PositiveIntegerField(default=0)),
                ("output_tokens", models.PositiveBigIntegerField(default=0)),
                ("errors", models.PositiveIntegerField(default=0)),
                ("repeats", models.PositiveIntegerField(default=0)),
                ("repeat_tokens", models.PositiveBigIntegerField(default=0)),
                ("cost_microusd", models.PositiveBigIntegerField(default=0)),
                ("largest_tokens", models.PositiveIntegerField(default=0)),
                ("largest_position", models.PositiveIntegerField(default=0)),
                (
                    "project",
                    models.ForeignKey(
                        db_index=False,
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="+",
                        to="accounts.project",
                    ),
                ),
                (
                    "session",
                    models.ForeignKey(
                        db_index=False,
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="tool_rollups",
                        to="agent_sessions.agentsession",
                    ),
                ),
            ],
            options={
                "indexes": [models.Index(fields=["project", "day"], name="tool_rollup_span")],
            },
        ),
    ]
