from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("agent_sessions", "0004_history_point")]

    operations = [
        migrations.AddField(
            model_name="rollupcursor",
            name="version",
            field=models.SmallIntegerField(default=0, db_default=0),
        ),
    ]
