"""Beginnings of requests for work, and of changes of the task, in languages other than English.

German, French, Spanish, Chinese and Japanese. Verbs are stems, so that each covers its forms.
"""

from __future__ import annotations

import re

#: German polite forms, which move the verb of the request to its end.
_ASKING = r"(?:kannst|könntest) du|(?:können|könnten) sie|(?:ich|wir) (?:möchten?|will|wollen|müssen|sollten)"
#: What may precede the request itself, such as thanks and polite forms.
_BEFORE = (
    rf"(?:(?:(?:ok(?:ay)?|super|gut|danke|vielen dank|bitte|jetzt|nun|dann|als nächstes|{_ASKING}"
    r"|merci|maintenant|ensuite|peux-tu|pourrais-tu|pouvez-vous|(?:je veux|il faut|on doit)(?: que tu)?"
    r"|gracias|perfecto|ahora|luego|por favor|puedes|podrías|(?:quiero|necesito)(?: que)?|hay que|vamos a)\b"
    r"|[¡¿]|好的?|谢谢|很好|现在|接下来|然后|请|帮我|帮忙|麻烦你?|我(?:们)?(?:想|要|需要)?|需要|再|给我"
    r"|ありがとう(?:ございます)?|では|次に|今度は)[\s,.!:;，。！、–—-]*)*"
)
_WORK = (
    r"(?:implement|refa[ck]tor|optimi[sz]|anal[iy][sz]|migr|instal|[ck]onfigur|do[ck]ument|debug)\w++"
    r"|(?:füge?|ergänz|erstell|schreib|beheb|reparier|korrigier|entfern|lösch|änder|aktualisier|bau|entwickl"
    r"|übersetz|ersetz|verbesser|erweiter)\w*+"
    r"|(?:ajout|cré[ée]|écri[st]|corrig|répar|supprim|modifi|tradui|remplac|amélior|développ|renomm)\w*+"
    r"|(?:añad|agreg|cre[ae]|escrib|correg|arregl|elimin|borr[ae]|cambi|actuali[cz]|tradu[cz]|reemplaz|mejora"
    r"|desarroll|renombr)\w*+"
    r"|(?:(?!为什么)[把将给为在对]\S{1,30}?)?(?:添加|增加|新增|加上|实现|创建|编写|写|修复|修改|重构|删除|移除|更新|优化"
    r"|部署|翻译|迁移|替换|升级)(?![的了])"
)
#: A request that ends with its verb: German with a polite form at the beginning, and Japanese.
_VERB_LAST = (
    rf"(?:bitte|{_ASKING})\b"
    r".*\b(?:(?:hinzu|ein|um|ab)?(?:füg|zufüg|erstell|schreib|beheb|repar|korrig|entfern|lösch|änder|aktual|bau"
    r"|entwick|übersetz|ersetz|besser|erweiter|optim|implement|refaktor|installier|konfigur|richt)\w*n)\b"
    r"|.*(?:追加|実装|作成|修正|変更|削除|更新|改善|翻訳|移行|リファクタ\w*|書い|作っ|直し)\w{0,3}"
    r"(?:ください|下さい|お願い|ほしい|欲しい|たい|くれ)"
)
#: Not a noun ("Installation"), nor followed by a reference to the current work ("Korrigiere das").
_OTHER_WORK = (
    r"(?<!ion)(?<!ions)(?<!ung)(?<!ing)(?<!ed)(?<!ión)"
    r"(?!\s*(?:(?:this|that|it|these|those|them|both|all|\d+|das|dies|es|ça|cela|ceci|eso|esto|lo)\b"
    r"|这个|这些|它|那个|これ|それ))"
)
_PIVOT = (
    r"(?:neue|andere|nächste) aufgabe\b|vergiss (?:das|es)\b"
    r"|(?:nouvelle|autre) tâche\b|oublie (?:ça|cela)\b"
    r"|nueva tarea\b|otra tarea\b|olvida (?:eso|esto)\b|olvídalo\b|新的?任[务務]|换个任务|算了"
    r"|新しいタスク|別のタスク|それは忘れて"
)

PIVOT = re.compile(rf"{_BEFORE}(?:{_PIVOT})", re.IGNORECASE)
REQUEST = re.compile(rf"{_BEFORE}(?:(?:{_WORK}){_OTHER_WORK}|{_VERB_LAST})", re.IGNORECASE)
