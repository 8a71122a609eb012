"""Compactions are counted that changed what is served; before, those that were refused or skipped were too."""

from django.db import migrations

COUNT = """
UPDATE agent_sessions_agentsession s
   SET compaction_count = (SELECT count(*) FROM agent_sessions_compaction c
                            WHERE c.session_id = s.id AND c.state IN ('done', 'reverted'))
 WHERE compaction_count > 0
"""
BACK = """
UPDATE agent_sessions_agentsession s
   SET compaction_count = (SELECT coalesce(max(number), 0) FROM agent_sessions_compaction c
                            WHERE c.session_id = s.id)
"""


class Migration(migrations.Migration):
    dependencies = [("agent_sessions", "0014_spending")]

    operations = [migrations.RunSQL(COUNT, BACK)]
