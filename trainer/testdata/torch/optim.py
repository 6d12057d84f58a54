#!/usr/bin/python3
"""Write what torch.optim does in float64, for trainer/golden_test.go to compare.

    /usr/bin/python3 trainer/testdata/torch/optim.py trainer/testdata/torch/optim.jsonl

needs Debian's python3-torch and libopenblas0. The file is the same on every run.
Its first line names the version; each of the others is one case:

    optimizer  torch's name
    groups     the settings of each group, by the name that they have in Go; what
               is not there is torch's default. One group has both parameters,
               two have one each
    schedule   if a curve moves the rates: its settings, by its name. Warmup
               holds the curve that comes then
    values     after each step, the elements of both parameters
    rates      before each step, the rate of each group, and
    momenta    the momentum or beta1
    metrics    what ReduceLROnPlateau is given, after each step
    max        of clip_grad_norm_, on gradients of step 0, with the norm before
               and the gradients after

grad, below, is the gradient of an element. The second parameter has none in step 3.
published.py has what torch lacks.
"""

import json
import sys
import warnings

import torch
from torch.optim import lr_scheduler

warnings.filterwarnings("ignore")
torch.set_default_dtype(torch.float64)

START = [[1.0, -2.0, 0.5], [[0.25, -0.75], [3.0, -0.125]]]
SIZES = [3, 4]
STEPS = 8


def grad(step, element):
    return ((5 * step + 3 * element + step * element) % 13 - 5) / 8


# The names of arguments in Go and here, where they are not equal but for letters.
NAMES = {
    "LRDecay": "lr_decay", "WeightDecay": "weight_decay", "Initial": "initial_accumulator_value",
    "Every": "step_size", "Min": "eta_min", "Rise": "pct_start", "Div": "div_factor",
    "FinalDiv": "final_div_factor", "ThreePhase": "three_phase", "MinMomentum": "base_momentum",
    "MaxMomentum": "max_momentum", "Start": "start_factor",
}
BETAS = {"Adam": (0.9, 0.999), "AdamW": (0.9, 0.999), "LAMB": (0.9, 0.999), "Lion": (0.9, 0.99)}
ZERO = 5e-324  # trainer.Zero


def arguments(config):
    return {NAMES.get(k, k.lower()): 0.0 if v == ZERO else v for k, v in config.items()}


def settings(name, config):
    config, args = dict(config), {}
    if name in BETAS:
        first, second = BETAS[name]
        args["betas"] = (config.pop("Beta1", first), config.pop("Beta2", second))
    return {**args, **arguments(config)}


def build(name, groups):
    params = [torch.tensor(x) for x in START]
    each = [params] if len(groups) == 1 else [[p] for p in params]
    out = [{"params": ps, **settings(name, config)} for ps, config in zip(each, groups)]
    optimizer = getattr(torch.optim, name)
    if len(out) == 1:  # by the constructor, for Adagrad overlooks a group's initial sum
        return params, optimizer(**{"lr": 1e-3, **out[0]} if name == "SGD" else out[0])
    return params, optimizer(out, lr=1e-3) if name == "SGD" else optimizer(out)


def curve(optimizer, name, config):
    config = dict(config)
    if name == "StepLR":
        return lr_scheduler.StepLR(optimizer, **arguments(config))
    if name == "CosineAnnealing":
        return lr_scheduler.CosineAnnealingLR(optimizer, T_max=config.pop("Steps"), **arguments(config))
    if name == "Warmup":
        steps, then = config.pop("Steps", 5), config.pop("Then", None)
        rise = lr_scheduler.LinearLR(optimizer, total_iters=steps, **arguments(config))
        if not then:
            return rise
        return lr_scheduler.SequentialLR(optimizer, [rise, curve(optimizer, *then)], [steps])
    if name == "OneCycle":
        if config.pop("Linear", False):
            config["anneal_strategy"] = "linear"
        config["cycle_momentum"] = not config.pop("KeepMomentum", False)
        return lr_scheduler.OneCycleLR(optimizer, total_steps=config.pop("Steps"),
                                       max_lr=[g["lr"] for g in optimizer.param_groups],
                                       **arguments(config))
    raise ValueError(name)


def plateau(optimizer, config):
    args = {"min_lr" if k == "Min" else k.lower(): v for k, v in config.items()}
    args["mode"] = "max" if args.pop("max", False) else "min"
    args["threshold_mode"] = "abs" if args.pop("absolute", False) else "rel"
    args["patience"] = max(args.get("patience", 10), 0)
    return lr_scheduler.ReduceLROnPlateau(optimizer, **args)


def give(params, step):
    first = 0
    for which, p in enumerate(params):
        p.grad = torch.tensor([grad(step, first + i) for i in range(SIZES[which])]).view(p.shape)
        if which == 1 and step == 3:
            p.grad = None
        first += SIZES[which]


def flat(tensors):
    return [x for t in tensors for x in t.flatten().tolist()]


def train(name, groups, schedule=None, steps=STEPS, values=True, metrics=None, build=build):
    params, optimizer = build(name, groups)
    case = {"optimizer": name, "groups": groups}
    if schedule:
        case["schedule"] = schedule
    for what, wanted in (("values", values), ("rates", schedule), ("momenta", schedule)):
        if wanted:
            case[what] = []
    if metrics:
        case["metrics"] = metrics
        mover, steps = plateau(optimizer, schedule[1]), len(metrics)
    elif schedule:
        mover = curve(optimizer, *schedule)
    for step in range(steps):
        if schedule:
            case["rates"].append([g["lr"] for g in optimizer.param_groups])
            case["momenta"].append([g["betas"][0] if "betas" in g else g.get("momentum", 0)
                                    for g in optimizer.param_groups])
        give(params, step)
        optimizer.step()
        if values:
            case["values"].append(flat(params))
        if metrics:
            mover.step(metrics[step])
        elif schedule and step < steps - 1:
            mover.step()
    return case


def clip(most):
    params, _ = build("SGD", [{}])
    give(params, 0)
    norm = torch.nn.utils.clip_grad_norm_(params, most)
    return {"max": most, "norm": norm.item(), "gradients": flat(p.grad for p in params)}


OPTIMIZERS = {
    "SGD": [
        {}, {"LR": 0.1}, {"LR": 0.01, "Momentum": 0.5}, {"LR": 0.1, "Momentum": 0.9, "Dampening": 0.1},
        {"LR": 0.1, "Momentum": 0.9, "Nesterov": True},
        {"LR": 0.1, "Momentum": 0.9, "WeightDecay": 0.01, "Maximize": True},
    ],
    "Adadelta": [
        {}, {"LR": 0.5, "Rho": 0.95, "Eps": 1e-5, "WeightDecay": 0.01}, {"Maximize": True},
    ],
    "Adam": [
        {}, {"LR": 0.1, "Beta1": 0.8, "Beta2": 0.9, "Eps": 1e-4}, {"LR": 0.05, "WeightDecay": 0.1},
        {"LR": 0.1, "Beta2": 0.5, "AMSGrad": True},
        {"LR": 0.01, "WeightDecay": 0.1, "AMSGrad": True, "Maximize": True},
    ],
    "AdamW": [
        {}, {"LR": 0.1, "Beta1": 0.8, "Beta2": 0.9, "Eps": 1e-4, "WeightDecay": 0.1},
        {"LR": 0.1, "Beta2": 0.5, "AMSGrad": True}, {"LR": 0.1, "WeightDecay": 0.1, "Maximize": True},
    ],
    "Adagrad": [
        {}, {"LR": 0.1, "LRDecay": 0.3}, {"LR": 0.1, "WeightDecay": 0.1, "Eps": 1e-3},
        {"LR": 0.1, "Initial": 0.5, "Maximize": True},
    ],
    "RMSprop": [
        {}, {"Centered": True}, {"Momentum": 0.9}, {"LR": 0.1, "Alpha": 0.9, "Eps": 1e-3, "WeightDecay": 0.1},
        {"Centered": True, "Momentum": 0.5, "WeightDecay": 0.1, "Maximize": True},
    ],
}

GROUPS = {
    "SGD": [{"LR": 0.1, "Momentum": 0.9}, {"Nesterov": True, "Momentum": 0.5, "WeightDecay": 0.1}],
    "AdamW": [{"LR": 0.1, "WeightDecay": 0.2}, {"Beta1": 0.5, "AMSGrad": True}],
    "RMSprop": [{"LR": 0.1}, {"Centered": True, "Momentum": 0.9}],
}

CURVES = [
    ["StepLR", {"Every": 3}], ["StepLR", {"Every": 1, "Gamma": 0.7}],
    ["CosineAnnealing", {"Steps": 7}], ["CosineAnnealing", {"Steps": 10, "Min": 0.01}],
    ["Warmup", {}], ["Warmup", {"Steps": 4, "Start": 0.1}],
    ["Warmup", {"Steps": 3, "Start": 0.01, "Then": ["CosineAnnealing", {"Steps": 9, "Min": 0.001}]}],
    ["Warmup", {"Steps": 2, "Then": ["StepLR", {"Every": 4, "Gamma": 0.5}]}],
    ["OneCycle", {"Steps": 20}], ["OneCycle", {"Steps": 20, "Linear": True}],
    ["OneCycle", {"Steps": 20, "ThreePhase": True}],
    ["OneCycle", {"Steps": 20, "Rise": 0.45, "Div": 10, "FinalDiv": 100, "Linear": True,
                  "ThreePhase": True, "MinMomentum": 0.5, "MaxMomentum": 0.9}],
    ["OneCycle", {"Steps": 20, "Rise": 0.51, "KeepMomentum": True}],
]

FALLING = [1, 0.5, 0.49999, 0.5, 0.4, 0.4, 0.4, 0.4, 0.39, 0.4, 0.4, 0.4, 0.4, 0.4, 0.4, 0.4, 0.4, 0.4, 0.4, 0.4]
PLATEAUS = [
    {}, {"Patience": 2}, {"Patience": -1, "Factor": 0.5}, {"Patience": 1, "Cooldown": 2, "Factor": 0.3},
    {"Patience": 1, "Min": 0.01}, {"Patience": 1, "Eps": 0.005}, {"Patience": 1, "Threshold": 0.3},
    {"Patience": 1, "Threshold": 0.05, "Absolute": True}, {"Patience": 1, "Max": True},
    {"Patience": 2, "Max": True, "Absolute": True, "Threshold": 0.2},
]


def cases():
    for name, configs in OPTIMIZERS.items():
        for config in configs:
            yield train(name, [config])
    for name, groups in GROUPS.items():
        yield train(name, groups)
    yield train("SGD", [{"LR": 0.1, "Momentum": 0.9}], ["OneCycle", {"Steps": 8}])
    yield train("AdamW", GROUPS["AdamW"], ["OneCycle", {"Steps": 8}])
    yield train("Adagrad", [{"LR": 0.1, "LRDecay": 0.3}], ["StepLR", {"Every": 2}])
    for schedule in CURVES:
        yield train("SGD", [{"LR": 0.1, "Momentum": 0.9}, {"LR": 0.03, "Momentum": 0.8}], schedule, 20, False)
    for config in PLATEAUS:
        metrics = [-x for x in FALLING] if config.get("Max") and config.get("Absolute") else FALLING
        yield train("SGD", [{"LR": 0.1}, {"LR": 0.03}], ["Plateau", config], 0, False, metrics)
    for most in 0.5, 1.0, 100.0, 0.0:
        yield clip(most)


def main():
    with open(sys.argv[1], "w") as out:
        print(json.dumps({"torch": torch.__version__}), file=out)
        for case in cases():
            print(json.dumps(case, separators=(",", ":")), file=out)


if __name__ == "__main__":
    main()
