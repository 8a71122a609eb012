from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [
        ("agent_sessions", "0020_edits_once"),
    ]

    operations = [
        migrations.AddField(model_name="recap", name="lines", field=models.BinaryField(null=True)),
        migrations.AddField(
            model_name="recap", name="edit_ordinal", field=models.PositiveIntegerField(null=True)
        ),
        migrations.AlterField(model_name="recap", name="body", field=models.BinaryField(null=True)),
    ]
