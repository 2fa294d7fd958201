"""Parameters for a wanted promise: they keep it, hardly better ones break it, and impossible wishes are refused."""

import contextlib
import math

import numpy as np
import pytest

from auditor.core import DPSGD, Adjacency, FixedSizeSampling, InputError
from auditor.theory import (
    Corollary7,
    Exact,
    MomentMatched,
    WantedAdvantage,
    WantedBayesSecurity,
    WantedEpsilon,
    WantedTPR,
    accountant_has_replace_one,
    bayes_security_closed_form,
    epsilon,
    gaussian_epsilon,
    noise_multiplier_for,
    parameters as module,
    sampling_rate_for,
    steps_for,
    total_variation,
    tpr_exact,
)

ADD_REMOVE, REPLACE_ONE = Adjacency.ADD_REMOVE, Adjacency.REPLACE_ONE
TARGETS = [
    WantedBayesSecurity(0.98),
    WantedBayesSecurity(0.5),
    WantedAdvantage(0.02, ADD_REMOVE),
    WantedTPR(0.01, at_fpr=0.001),
    WantedTPR(0.2, at_fpr=0.1, adjacency=ADD_REMOVE),
]


def leak(target, training):
    """What is to stay below the wanted number, by the public functions, and that number."""
    if isinstance(target, WantedEpsilon):
        return epsilon(training, delta=target.delta, adjacency=target.adjacency).value, target.most
    if isinstance(target, WantedTPR):
        return tpr_exact(training, fpr=target.at_fpr, adjacency=target.adjacency).value, target.most
    advantage = total_variation(training, adjacency=target.adjacency).value
    return advantage, 1 - target.least if isinstance(target, WantedBayesSecurity) else target.most


@pytest.mark.parametrize("target", TARGETS)
def test_noise_is_the_smallest_that_will_do(target):
    """The noise keeps the promise, and 0.01% less breaks it."""
    found = noise_multiplier_for(target, sampling_rate=0.002, steps=3000)
    reached, wanted = leak(target, DPSGD(found.value, 0.002, 3000))
    assert reached <= wanted + 1e-15
    assert leak(target, DPSGD(found.value * 0.9999, 0.002, 3000))[0] > wanted


@pytest.mark.parametrize("target", TARGETS)
def test_rate_is_the_largest_that_will_do(target):
    """The sampling rate keeps the promise, and 0.01% more breaks it."""
    found = sampling_rate_for(target, noise_multiplier=0.9, steps=500)
    reached, wanted = leak(target, DPSGD(0.9, found.value, 500))
    assert reached <= wanted + 1e-15
    assert leak(target, DPSGD(0.9, found.value * 1.0001, 500))[0] > wanted


@pytest.mark.parametrize("target", TARGETS)
def test_steps_are_the_most_that_will_do(target):
    """The number of steps keeps the promise, and one more (or 0.01% more) breaks it."""
    found = steps_for(target, noise_multiplier=1.1, sampling_rate=0.002)
    assert isinstance(found.value, int)
    reached, wanted = leak(target, DPSGD(1.1, 0.002, found.value))
    assert reached <= wanted + 1e-15
    further = (
        found.value + max(1, math.ceil(found.value * 1e-4)) if found.value >= 100_000 else found.value + 1
    )
    assert leak(target, DPSGD(1.1, 0.002, further))[0] > wanted


@pytest.mark.parametrize(
    ("target", "rate", "steps"),
    [(WantedEpsilon(1.0, delta=1e-5), 0.05, 40), (WantedEpsilon(0.1, 1e-6, REPLACE_ONE), 0.001, 5000)],
)
def test_epsilon_by_the_accountant(target, rate, steps):
    """For a wanted epsilon the noise keeps the accountant's epsilon below it, by less than 0.1%."""
    if target.adjacency is REPLACE_ONE and not accountant_has_replace_one():
        with pytest.raises(InputError, match=r"cannot be worked out here: .* needs dp-accounting 0\.6\.0"):
            noise_multiplier_for(target, sampling_rate=rate, steps=steps)
        return
    found = noise_multiplier_for(target, sampling_rate=rate, steps=steps)
    reached, wanted = leak(target, DPSGD(found.value, rate, steps))
    assert wanted * 0.999 < reached <= wanted
    assert found.promise.delta == target.delta


def test_epsilon_without_sampling():
    """At rate 1 the noise for epsilon 1 is sqrt(T) / mu with mu(1, 1e-5) = .268051 (statistics.md, section 7)."""
    found = noise_multiplier_for(WantedEpsilon(1.0, delta=1e-5), sampling_rate=1.0, steps=9)
    assert found.value == pytest.approx(3 / 0.268051, rel=1e-5)
    assert gaussian_epsilon(3 / found.value, delta=1e-5) <= 1.0


def test_equation_4():
    """Cherubin et al. 2024, Eq. 4: beta* = 0.98 at T = 5000 takes p of .000354528 s, rounded down here."""
    found = sampling_rate_for(
        WantedBayesSecurity(0.98), noise_multiplier=1.0, steps=5000, method=Corollary7()
    )
    assert found.value == pytest.approx(0.000354528, rel=4e-6)
    noise = noise_multiplier_for(
        WantedBayesSecurity(0.98), sampling_rate=0.001, steps=5000, method=Corollary7()
    )
    assert noise.value == pytest.approx(0.001 / 0.000354528, rel=4e-6)
    steps = steps_for(
        WantedBayesSecurity(0.98), noise_multiplier=1.0, sampling_rate=0.001, method=Corollary7()
    )
    assert steps.value == math.floor(5000 * (0.0003545279 / 0.001) ** 2)
    assert (found.status, noise.status) == ("approximation", "approximation")


def test_published_form_takes_too_little_noise():
    """Where the published form is on the unsafe side, its noise breaks the promise that the exact method keeps."""
    target = WantedBayesSecurity(0.8)
    published, matched, exact = (
        noise_multiplier_for(target, sampling_rate=0.001, steps=50_000, method=method)
        for method in (Corollary7(), MomentMatched(), Exact())
    )
    assert published.value < exact.value <= matched.value
    assert leak(target, published.training)[0] > 0.2
    assert leak(target, matched.training)[0] <= 0.2


@pytest.mark.parametrize("method", [Corollary7(), MomentMatched()])
@pytest.mark.parametrize(
    "target", [WantedBayesSecurity(0.9), WantedAdvantage(0.1), WantedTPR(0.2, at_fpr=0.1)]
)
def test_closed_forms_agree_across_targets(method, target):
    """Bayes security 0.9, advantage 0.1 and TPR 0.2 at FPR 0.1 are one wish to a closed form (Proposition 9)."""
    found = noise_multiplier_for(target, sampling_rate=0.01, steps=1000, method=method)
    reference = noise_multiplier_for(WantedBayesSecurity(0.9), sampling_rate=0.01, steps=1000, method=method)
    assert found.value == pytest.approx(reference.value, rel=3e-6)


def test_vectors():
    """One noise for a vector of rates, and one rate for a vector of noises, keep the promise of the whole run."""
    rates = [0.01] * 50 + [0.03] * 50
    found = noise_multiplier_for(WantedAdvantage(0.1), sampling_rate=rates)
    assert 0.0999 < total_variation(DPSGD(found.value, rates)).value <= 0.1
    noises = [1.0] * 50 + [2.0] * 50
    rate = sampling_rate_for(WantedAdvantage(0.1), noise_multiplier=noises)
    assert 0.0999 < total_variation(DPSGD(noises, rate.value)).value <= 0.1
    closed = noise_multiplier_for(WantedAdvantage(0.1), sampling_rate=rates, method=Corollary7())
    assert 1 - bayes_security_closed_form(DPSGD(closed.value, rates)).value == pytest.approx(0.1, rel=1e-5)


@pytest.mark.parametrize("method", [Exact(), MomentMatched()])
def test_fixed_size_takes_more_noise(method):
    """Batches of a fixed size give more away than Poisson batches, so they take more noise."""
    poisson, fixed = (
        noise_multiplier_for(WantedAdvantage(0.1), sampling_rate=0.01, steps=500, method=method, **kind)
        for kind in ({}, {"sampling": FixedSizeSampling()})
    )
    assert fixed.value > poisson.value
    assert fixed.training.fixed_size


def test_monotone_in_the_wish():
    """A stronger wish takes more noise, a smaller rate and fewer steps."""
    wishes = [WantedBayesSecurity(beta) for beta in (0.5, 0.9, 0.99, 0.9999)]
    noise = [noise_multiplier_for(wish, sampling_rate=0.01, steps=300).value for wish in wishes]
    rate = [sampling_rate_for(wish, noise_multiplier=1.0, steps=300).value for wish in wishes]
    steps = [steps_for(wish, noise_multiplier=1.0, sampling_rate=1e-4).value for wish in wishes]
    assert noise == sorted(set(noise))
    assert rate == sorted(set(rate), reverse=True)
    assert steps == sorted(set(steps), reverse=True)


def test_few_evaluations(monkeypatch):
    """An exact quantity is evaluated at most ten times in an ordinary setting."""
    calls = []
    original = module.promise
    monkeypatch.setattr(module, "promise", lambda *args, **kw: calls.append(1) or original(*args, **kw))
    noise_multiplier_for(WantedBayesSecurity(0.95), sampling_rate=0.01, steps=1000)
    assert 2 <= len(calls) <= 10


def test_values_are_rounded_to_the_safe_side():
    """Six digits: noise up, rate down; a tiny change of the wish moves the last digit only."""
    noise = noise_multiplier_for(
        WantedBayesSecurity(0.97), sampling_rate=0.003, steps=777, method=Corollary7()
    )
    exact = 0.003 * math.sqrt(777) / (math.sqrt(2) * 0.026593)  # erfinv(.03) = .0265930
    assert noise.value == pytest.approx(exact, rel=1e-4)
    assert float(f"{noise.value:.6g}") == noise.value
    assert noise.promise.value >= 0.97
    rate = sampling_rate_for(WantedBayesSecurity(0.97), noise_multiplier=2.0, steps=777, method=Corollary7())
    assert float(f"{rate.value:.6g}") == rate.value
    assert rate.promise.value >= 0.97


def test_every_rate_will_do():
    """Where even the whole training set in every step keeps the promise, the rate is 1."""
    found = sampling_rate_for(WantedBayesSecurity(0.9), noise_multiplier=1000.0, steps=10)
    assert found.value == 1.0
    assert found.promise.value >= 0.9


def test_every_noise_will_do():
    """A record that is never drawn with probability .999^1000 = .368 is that safe without noise: the range is given."""
    with pytest.raises(
        InputError, match=r"every noise multiplier keeps .* from 0\.368 .* to 1 with endless noise"
    ):
        noise_multiplier_for(WantedBayesSecurity(0.2), sampling_rate=0.001, steps=1000)
    with pytest.raises(InputError, match=r"from 0\.632 .* to 0 with"):
        noise_multiplier_for(WantedAdvantage(0.7), sampling_rate=0.001, steps=1000)
    with pytest.raises(
        InputError, match=r"every noise multiplier keeps the wanted epsilon .* chance of only 5e-8,"
    ):
        noise_multiplier_for(WantedEpsilon(1.0, delta=1e-5), sampling_rate=1e-9, steps=50)
    with pytest.raises(InputError, match=r"to 0\.1 with endless noise"):
        noise_multiplier_for(WantedTPR(0.9, at_fpr=0.1), sampling_rate=0.001, steps=1000)


def test_just_above_what_no_noise_gives():
    """A wish just above .999^1000 = .3677 is reached with very little noise."""
    found = noise_multiplier_for(WantedBayesSecurity(0.38), sampling_rate=0.001, steps=1000)
    assert found.value < 0.25
    assert found.promise.value >= 0.38


def test_no_number_of_steps_will_do():
    """A wish that one step breaks is refused with what the step gives; one that all steps keep likewise."""
    with pytest.raises(InputError, match=r"no number of steps keeps .* one step alone gives"):
        steps_for(WantedBayesSecurity(0.98), noise_multiplier=0.5, sampling_rate=1.0)
    with pytest.raises(InputError, match="even 1e12 steps keep"):
        steps_for(WantedBayesSecurity(0.5), noise_multiplier=1e9, sampling_rate=1e-6)


def test_no_noise_will_do():
    """A wish beyond every noise that is looked at is refused with the bound at the largest, and with a way out."""
    words = (
        r"no noise multiplier up to 1e12 was found that keeps .*: at 1e12 the bound is still 2\.5\de-10 \(.*\);"
        r" ask for less protection, or take a smaller sampling rate or fewer steps\.$"
    )
    with pytest.raises(InputError, match=words):  # .01 sqrt(1e9) sqrt(2/pi) / 1e12 = 2.52e-10
        noise_multiplier_for(WantedAdvantage(1e-12), sampling_rate=0.01, steps=10**9)
    with pytest.raises(
        InputError, match=r"no sampling rate down to 1e-300 was found .* or take more noise or"
    ):
        sampling_rate_for(
            WantedAdvantage(0.1), noise_multiplier=1e-3, steps=5, method=MomentMatched()
        )  # sinh(1e6) is e^1e6
    with pytest.raises(InputError, match="no noise multiplier up to 1e12 was found"):
        noise_multiplier_for(WantedEpsilon(1e-300, delta=1e-300), sampling_rate=0.01, steps=10)
    # Also when the number would round to the wished one.
    with pytest.raises(InputError, match=r"at 1e12 the bound is still 0\.999999999\d+ \("):
        noise_multiplier_for(WantedBayesSecurity(1 - 1e-12), sampling_rate=0.01, steps=10**9)


@pytest.mark.parametrize(
    ("target", "noise", "steps", "least"),
    [
        # Drawn at all with chance p T <= delta, the record changes nothing.
        (WantedEpsilon(1e-3, delta=1e-12), 0.1, 10**7, 1e-19),
        (WantedEpsilon(1e-3, 1e-12, REPLACE_ONE), 0.1, 10**7, 1e-19),
        # Advantage <= 1 - (1 - p)^T <= p T.
        (WantedAdvantage(1e-12), 0.01, 10**6, 1e-18),
        (WantedBayesSecurity(1 - 1e-10), 0.01, 10**6, 1e-16),
        (WantedTPR(0.1 + 1e-10, at_fpr=0.1), 0.01, 10**6, 1e-16),
    ],
)
def test_there_is_always_a_sampling_rate(target, noise, steps, least):
    """A record that is hardly ever drawn is safe with hardly any noise, so every wish has a sampling rate."""
    if (
        isinstance(target, WantedEpsilon)
        and target.adjacency is REPLACE_ONE
        and not accountant_has_replace_one()
    ):
        pytest.skip("needs dp-accounting 0.6.0")
    found = sampling_rate_for(target, noise_multiplier=noise, steps=steps)
    assert found.value >= least * (1 - 1e-5)
    assert target.kept_by(found.promise.value)


@pytest.mark.parametrize(
    ("build", "words"),
    [
        (
            lambda: WantedAdvantage(1e-300),
            "wanted advantage must be 1e-12 or more, .*, got 1e-300; want a larger",
        ),
        (lambda: WantedAdvantage(1e-17), "1e-12 or more, .* got 1e-17"),
        (lambda: WantedAdvantage(1 - 1e-16), "at most 1 - 1e-12, .* got 0.9999999999999999; want a smaller"),
        (lambda: WantedBayesSecurity(1 - 1e-16), "wanted Bayes security must be at most 1 - 1e-12"),
        (lambda: WantedBayesSecurity(1e-300), "wanted Bayes security must be 1e-12 or more"),
        (
            lambda: WantedTPR(0.0010000000000000002, at_fpr=0.001),
            r"must be 1e-12 or more above its false positive rate 0\.001, .* got 0\.0010000000000000002; want",
        ),
    ],
)
def test_wishes_that_drown_in_rounding_are_refused(build, words):
    """A wish closer than 1e-12 to nothing or to all is refused with the value, the limit and a way out."""
    with pytest.raises(InputError, match=words):
        build()


@pytest.mark.parametrize("method", [Exact(), Corollary7(), MomentMatched()])
@pytest.mark.parametrize(
    "target",
    [
        WantedAdvantage(1e-12),
        WantedAdvantage(1 - 1e-12),
        WantedBayesSecurity(1e-12),
        WantedBayesSecurity(1 - 1e-12),
        WantedTPR(0.1 + 2e-12, at_fpr=0.1),
        WantedTPR(1 - 1e-12, at_fpr=1 - 1e-11),
    ],
)
def test_extreme_wishes_give_a_number_or_a_sentence(target, method):
    """Wishes at the very ends of their ranges end in a parameter that keeps them or in one sentence."""
    for call in (
        lambda: noise_multiplier_for(target, sampling_rate=0.01, steps=100, method=method),
        lambda: noise_multiplier_for(target, sampling_rate=1e-200, steps=100, method=method),
        lambda: sampling_rate_for(target, noise_multiplier=1.0, steps=100, method=method),
        lambda: steps_for(target, noise_multiplier=1.0, sampling_rate=0.01, method=method),
    ):
        with contextlib.suppress(InputError):
            found = call()
            assert target.kept_by(found.promise.value)
            assert found.in_words().endswith(".")


@pytest.mark.parametrize(
    ("noise", "rate", "steps"), [(1e-3, 0.5, 10**7), (1e6, 1e-6, 1), (0.3, 1.0, 10), (0.2, 0.01, 10**4)]
)
def test_extreme_settings_give_a_number_or_a_sentence(noise, rate, steps):
    """No setting, however extreme, ends in anything but a parameter that keeps the promise or an InputError."""
    for call in (
        lambda: noise_multiplier_for(WantedBayesSecurity(0.9), sampling_rate=rate, steps=steps),
        lambda: sampling_rate_for(WantedBayesSecurity(0.9), noise_multiplier=noise, steps=steps),
        lambda: steps_for(WantedBayesSecurity(0.9), noise_multiplier=noise, sampling_rate=rate),
    ):
        with contextlib.suppress(InputError):
            found = call()
            assert found.promise.value >= 0.9
            assert np.isfinite(found.value)


def test_the_answer_as_a_sentence():
    """The sentence holds the value, the wish and how far to trust it."""
    found = noise_multiplier_for(
        WantedBayesSecurity(0.98), sampling_rate=0.001, steps=5000, method=Corollary7()
    )
    words = found.in_words()
    assert words.startswith(
        "By the closed form of Corollary 7, noise multiplier 2.82066 keeps the wanted Bayes security of at least 0.98,"
    )
    assert "approximation" in words
    assert (found.name, found.method) == ("noise_multiplier", found.promise.method)


def test_an_unsafe_answer_says_so():
    """Noise 1.00022 keeps advantage .1769 by Corollary 7 only: exactly it is .191 (statistics.md: .1912326 at noise 1)."""
    target = WantedAdvantage(0.1769)
    found = noise_multiplier_for(target, sampling_rate=0.001, steps=50_000, method=Corollary7())
    assert found.value == pytest.approx(1.00022, abs=1e-5)
    assert found.exact.value == pytest.approx(0.1912326, abs=1e-4)
    assert (
        "That form can be on the unsafe side: exactly, the advantage there is 0.191, which does not keep it"
        in (found.in_words())
    )
    matched = noise_multiplier_for(target, sampling_rate=0.001, steps=50_000, method=MomentMatched())
    assert "by the exact method the advantage there is at most 0.1767, which keeps it" in matched.in_words()
    assert noise_multiplier_for(target, sampling_rate=0.001, steps=50_000).exact is None


def test_a_mere_bound_settles_nothing():
    """Where the exact law is beyond reach and its bound above the wish, the sentence does not call the wish broken."""
    found = noise_multiplier_for(WantedAdvantage(1e-12), sampling_rate=1e-13, steps=1000, method=Corollary7())
    assert found.exact is None
    assert "whether it is so here was not worked out" in found.in_words()


def test_without_sampling_the_closed_form_is_exact():
    """At rate 1 Corollary 7 is proven, so its answer comes without a warning."""
    found = noise_multiplier_for(WantedAdvantage(0.1), sampling_rate=1.0, steps=10, method=Corollary7())
    assert found.exact is None
    assert found.in_words().startswith("Noise multiplier ")


def test_numbers_of_steps_in_words():
    """One step keeps, several keep, many are written with separators."""
    one = steps_for(WantedAdvantage(0.384), noise_multiplier=2.0, sampling_rate=1.0)  # 2 Phi(1/2) - 1 = .3829
    assert one.in_words().startswith("1 step keeps the wanted advantage of at most 0.384, replace-one")
    many = steps_for(
        WantedAdvantage(0.1), noise_multiplier=200.0, sampling_rate=1.0
    )  # (.251322 * 200 / 2)^2 = 631.6
    assert many.in_words().startswith("631 steps keep the wanted")
    assert (
        "1,263 steps keep"
        in steps_for(
            WantedBayesSecurity(0.9), noise_multiplier=200 * math.sqrt(2), sampling_rate=1.0
        ).in_words()
    )


@pytest.mark.parametrize("fixed", [{"sampling": FixedSizeSampling()}])
def test_the_published_form_refuses_fixed_sizes(fixed):
    """Corollary 7 is about coins: for sampled batches of a fixed size it is refused with the form that covers them."""
    wish, words = (
        WantedAdvantage(0.1),
        r"Corollary 7 does not fit .*give away more; use the moment-matched form",
    )
    with pytest.raises(InputError, match=words):
        noise_multiplier_for(wish, sampling_rate=0.01, steps=10, method=Corollary7(), **fixed)
    with pytest.raises(InputError, match=words):
        sampling_rate_for(wish, noise_multiplier=1.0, steps=10, method=Corollary7(), **fixed)
    with pytest.raises(InputError, match=words):
        steps_for(wish, noise_multiplier=1.0, sampling_rate=0.01, method=Corollary7(), **fixed)
    assert (
        noise_multiplier_for(wish, sampling_rate=1.0, steps=10, method=Corollary7(), **fixed).status
        == "proven"
    )


def test_closed_forms_refuse_what_they_cannot_say():
    """The closed forms give no epsilon and nothing about added records."""
    for target in (WantedEpsilon(1.0, delta=1e-5), WantedAdvantage(0.1, ADD_REMOVE)):
        with pytest.raises(InputError, match=r"closed forms are about replaced records .* use method=Exact"):
            noise_multiplier_for(target, sampling_rate=0.01, steps=10, method=Corollary7())


def test_fixed_sizes_know_no_added_records():
    """For batches of a fixed size a wish about added records is refused with the reason."""
    with pytest.raises(InputError, match="batches of a fixed size are accounted for replaced records only"):
        noise_multiplier_for(
            WantedAdvantage(0.1, ADD_REMOVE), sampling_rate=0.01, steps=10, sampling=FixedSizeSampling()
        )


@pytest.mark.parametrize(
    ("build", "words"),
    [
        (lambda: WantedBayesSecurity(1.0), r"wanted Bayes security must lie in \(0, 1\), got 1"),
        (lambda: WantedAdvantage(0.0), r"wanted advantage must lie in \(0, 1\), got 0"),
        (lambda: WantedEpsilon(0.0, delta=1e-5), "wanted epsilon must be above 0"),
        (lambda: WantedEpsilon(1.0, delta=0.0), r"delta must lie in \(0, 1\)"),
        (lambda: WantedTPR(0.01, at_fpr=0.1), r"must be above its false positive rate 0\.1, .* got 0\.01"),
        (lambda: WantedTPR(0.5, at_fpr=0.0), r"at_fpr must lie in \(0, 1\)"),
        (lambda: WantedAdvantage(0.1, "add-rmove"), "did you mean 'add-remove'"),
        (
            lambda: noise_multiplier_for(0.98, sampling_rate=0.1, steps=1),
            "target must be auditor.theory.WantedBayes",
        ),
        (
            lambda: noise_multiplier_for(WantedAdvantage(0.1), sampling_rate=0.1, steps=1, method="exact"),
            "method must be",
        ),
        (
            lambda: noise_multiplier_for(WantedAdvantage(0.1), sampling_rate=1.5, steps=1),
            "sampling_rate must",
        ),
        (
            lambda: sampling_rate_for(WantedAdvantage(0.1), noise_multiplier=0, steps=1),
            "noise_multiplier must",
        ),
        (lambda: steps_for(WantedAdvantage(0.1), noise_multiplier=1, sampling_rate=0), "sampling_rate must"),
        (
            lambda: steps_for(WantedAdvantage(0.1), noise_multiplier=1, sampling_rate="x"),
            "must be a number, got 'x'",
        ),
        (lambda: noise_multiplier_for("x", sampling_rate="y", steps="z"), "target must be .*, got 'x'"),
        (lambda: sampling_rate_for("x", noise_multiplier=None), "target must be .*, got 'x'"),
        (lambda: steps_for("x", noise_multiplier=None, sampling_rate=None), "target must be .*, got 'x'"),
        (
            lambda: noise_multiplier_for(WantedAdvantage(0.1), sampling_rate=0.1, steps=1, sampling="fixed"),
            "sampling must be auditor",
        ),
    ],
)
def test_bad_wishes_are_refused(build, words):
    """A wish out of range, a rate below its false positive rate or a choice by name is refused in one sentence."""
    with pytest.raises(InputError, match=words):
        build()


def test_wishes_in_words():
    """Each wish reads as a phrase, and a number next to 1 is not rounded to it."""
    assert WantedBayesSecurity(0.9999999).in_words() == "Bayes security of at least 0.9999999, replace-one"
    assert "at most 0.1000000001 at false positive rate 0.1," in WantedTPR(0.1 + 1e-10, at_fpr=0.1).in_words()
    assert WantedEpsilon(1.0, delta=1e-5).in_words() == "epsilon of at most 1 at delta 1e-5, add-remove"
