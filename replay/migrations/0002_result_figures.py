from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("replay", "0001_initial")]

    operations = [
        migrations.AddField(
            model_name="replayresult",
            name="budget_tokens",
            field=models.PositiveBigIntegerField(null=True),
        ),
        migrations.AddField(
            model_name="replayrun",
            name="custom_prices",
            field=models.JSONField(null=True),
        ),
        migrations.AddField(
            model_name="replaytarget",
            name="one_hour_cache",
            field=models.BooleanField(null=True),
        ),
        migrations.AddField(
            model_name="replaytarget",
            name="stalls",
            field=models.PositiveSmallIntegerField(db_default=0, default=0),
        ),
        migrations.AddField(
            model_name="replaytarget",
            name="written_share",
            field=models.FloatField(null=True),
        ),
    ]
