from django.db import migrations


class Migration(migrations.Migration):
    dependencies = [("accounts", "0001_initial")]

    operations = [
        migrations.RenameField(model_name="project", old_name="agreed_prices", new_name="custom_prices"),
    ]
