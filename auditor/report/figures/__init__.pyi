from auditor.report.figures.canvas import TIP, any_letter, one_line, svg, tip
from auditor.report.figures.epsilons import Kind, epsilon_rows
from auditor.report.figures.gallery import FIGURES as FIGURES, alt, figure as figure
