from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("agent_sessions", "0002_memory_revision_user")]

    operations = [
        migrations.AddField(
            model_name="message",
            name="omitted_from",
            field=models.IntegerField(null=True),
        ),
        migrations.AddField(
            model_name="agentsession",
            name="omitted_count",
            field=models.IntegerField(default=0, db_default=0),
        ),
        migrations.AddIndex(
            model_name="message",
            index=models.Index(
                condition=models.Q(("omitted_from__isnull", False)),
                fields=["session", "position"],
                name="message_omitted",
            ),
        ),
    ]
