"""PrivacyGuard's empirical epsilon by Clopper-Pearson limits."""

import pandas as pd
import torch
from privacy_guard.analysis.mia.aggregate_analysis_input import AggregateAnalysisInput, AggregationType
from privacy_guard.analysis.mia.mia_results import MIAResults

ABOUT = {
    "name": "PrivacyGuard",
    "requirements": ("privacyguard-platform==0.0.2", "torch==2.13.0", "scipy==1.17.1", "numpy==2.4.6"),
    "without": ("torchvision", "transformers", "accelerate", "ipywidgets"),
    "claims": "Empirical epsilon, the largest of the Clopper-Pearson limits of all thresholds.",
    "quote": "Empirical epsilon computed using the Clopper-Pearson CI method.",
    "source": "privacy_guard/analysis/mia/analysis_node.py, AnalysisNodeOutput.eps_cp",
    "people": True,
    "draws": (100, 20, 4),
}


def bound(member, nonmember, delta, confidence, people):
    """At 95% whatever the confidence: the library has no option for it."""
    tables = [
        pd.DataFrame({"score": side, "user": of})
        for side, of in zip((member, nonmember), people, strict=True)
    ]
    users = AggregateAnalysisInput(AggregationType.AVG, *tables, "user")
    sides = [torch.from_numpy(side["score"].to_numpy()) for side in (users.df_train_user, users.df_test_user)]
    return MIAResults(*sides).compute_acc_auc_ci_epsilon(delta)[2]
