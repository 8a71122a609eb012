"""Words of sentences that state a choice, a cause or a rule, in several languages.

Each is a pattern without groups. `\\b` ends a word whose longer forms mean something else.
"""

from __future__ import annotations

ENGLISH = (
    r"\b(?:(?:decided|deciding|(?:i|we) decide|prefer(?:s|red)?)\b|instead|because|so that|root cause"
    r"|must not|the (?:issue|problem|cause|fix|reason) (?:is|was)|going with|we (?:should|must)"
    r"|(?:i'll|we'll|let's) (?:use|keep|stick with)|turns out|found (?:that|the))"
)

_OTHERS = r"""
# German
entschieden|entscheid(?:e|en|ung)\b|statt(?:dessen)?\b|anstelle\b|weil\b|der grund\b|die ursache\b|bevorzug
das problem (?:ist|war|liegt)|der fehler (?:ist|war|liegt)|(?:darf|dürfen) nicht\b|stellt sich heraus
wir (?:sollten|müssen)|(?:ich|wir) (?:verwende|nutze|behalte|nehme)n?\b
# French
décid|au lieu d|plutôt que\b|parce qu|afin (?:de|que)\b|la cause\b|la raison\b|préf[éè]r|il s'avère|il faut\b
le problème (?:est|était|vient)|nous (?:devons|utilisons|gardons)|on (?:doit|garde|utilise)\b
je (?:garde|vais (?:utiliser|garder))\b|ne (?:doit|doivent|faut) pas\b
# Spanish
decid(?:í|ió|ido|imos)\b|en (?:lugar|vez) de\b|porque\b|para que\b|la causa\b|la razón\b|resulta que\b
el problema (?:es|era|está)|debemos\b|hay que\b|no debe|(?:voy|vamos) a (?:usar|mantener)
# Portuguese
decidi(?:mos|u|do)?\b|(?:em vez|ao invés) de\b|a razão\b|o problema (?:é|era|está)|devemos\b|acontece que\b
(?:vou|vamos) (?:usar|manter)|não (?:deve|podemos)\b
# Italian
deciso\b|decisione\b|decidiamo\b|invece d|al posto d|perch[éè]\b|affinché\b|dobbiamo\b|bisogna\b|la ragione\b
il problema (?:è|era)|(?:userò|useremo|usiamo)\b|non (?:deve|devono)\b
# Dutch
besloten\b|beslissing|in plaats van\b|omdat\b|zodat\b|de oorzaak\b|de reden\b|mag niet\b|blijkt\b
het probleem (?:is|was|zit)|we (?:moeten|gebruiken|houden)\b
# Russian
реши(?:л|ли|м)\b|решено|решение\b|вместо\b|потому что|поскольку|чтобы\b|причина\b|нельзя\b|оказалось
проблема (?:в|была)\b|(?:нужно|надо|должны|должен)\b|(?:используем|оставим)\b
# Chinese
决定|決定|改用|而不是|因[为為]|原因是|根本原因|[问問][题題](?:是|在)|[应應][该該]|必[须須]|不能|所以|[采採]用|[为為]了|不要
# Japanese
決め|代わりに|ではなく|なので|ため[、にで]|原因は|問題は|べき|必要があ|ことにし|いけない
# Korean
결정|대신|때문에|원인은|문제는|해야|하기로|안 됩니다|선호
"""

#: The same in other languages.
OTHERS = "|".join(line for line in _OTHERS.splitlines() if line and not line.startswith("#"))
