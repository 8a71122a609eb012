from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("agent_sessions", "0001_initial")]

    operations = [
        migrations.RemoveField(model_name="agentsession", name="calibration"),
        migrations.AddField(
            model_name="agentsession", name="calibration", field=models.JSONField(default=dict)
        ),
    ]
