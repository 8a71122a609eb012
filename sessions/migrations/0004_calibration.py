from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("agent_sessions", "0003_rename_memory_and_claims")]

    operations = [
        migrations.RemoveField(model_name="agentsession", name="calibration"),
        migrations.AddField(
            model_name="agentsession", name="calibration", field=models.JSONField(default=dict)
        ),
    ]
