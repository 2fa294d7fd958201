from auditor.report.annex import annex_of as annex_of
from auditor.report.comparison import listed as listed
from auditor.report.export import junit as junit, model_card as model_card, sarif as sarif
from auditor.report.findings import finding as finding, promised, verdict_sentence as verdict_sentence
from auditor.report.folder import site as site
from auditor.report.html import (
    card as card,
    cited as cited,
    escaped as escaped,
    glossary as glossary,
    markdown as markdown,
    methods_section as methods_section,
    render as render,
)
from auditor.report.kinds import view_of as view_of
from auditor.report.rows import Row
from auditor.report.terminal import (
    audit_text as audit_text,
    comparison_text as comparison_text,
    plan_text as plan_text,
)
from auditor.report.view import View as View, texts as texts
from auditor.report.words import STATUS, VERDICT, advice, fit_sentences, out_of_many
from auditor.verdicts.gates import Gates as Gates
from auditor.verdicts.limits import with_limits as with_limits
