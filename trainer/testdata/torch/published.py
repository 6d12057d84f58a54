#!/usr/bin/python3
"""Write what published code makes of LAMB and Lion, which torch.optim lacks, as optim.py
writes torch's, which has the rest: same parameters, gradients and form.

    cd trainer/testdata/torch
    /usr/bin/python3 published.py PYTORCH-IMAGE-MODELS AUTOML published.jsonl

needs what optim.py does, and a checkout, or a copy of the files that FROM names, of each
of the two repositories, both under the Apache License. Nothing else of them is loaded.

LAMB is timm's, which does what NVIDIA's FusedLAMB does with use_nvlamb: algorithm 2 of You
et al. 2020, arXiv 1904.00962, with phi(z) = z. By default it also clips the norm of all
gradients to 1, as FusedLAMB does, which is left to clip_grad_norm_ here; and it gives a
trust ratio to nothing that has no weight decay, which is not in the paper. The cases of
AdamW are those: without decay timm's LAMB is to be what AdamW is.

Lion is its authors': algorithm 2 of Chen et al. 2023, arXiv 2302.06675.
"""

import importlib
import json
import sys
import types

import torch

sys.dont_write_bytecode = True  # of what is next to this file
import optim

FROM = [
    "huggingface/pytorch-image-models 9a6fcf59d30c856f9720deca79d92451971bb0e5 timm/optim/lamb.py, _types.py",
    "google/automl 87461ee96d8bbfcaf1edd4fbd8659d31d3760a50 lion/lion_pytorch.py",
]

CASES = {
    "LAMB": [
        [{}], [{"WeightDecay": optim.ZERO}], [{"LR": 0.1}], [{"LR": 0.1, "WeightDecay": optim.ZERO}],
        [{"LR": 0.1, "Beta1": 0.8, "Beta2": 0.9, "Eps": 1e-4, "WeightDecay": 0.1}],
        [{"LR": 0.1, "WeightDecay": 1, "Maximize": True}],
        [{"LR": 0.1, "WeightDecay": 0.3}, {"LR": 0.03, "Beta1": 0.5, "WeightDecay": optim.ZERO}],
    ],
    "AdamW": [
        [{"LR": 0.1, "Eps": 1e-6, "WeightDecay": optim.ZERO}],
        [{"LR": 0.1, "Beta1": 0.8, "Beta2": 0.9, "Eps": 1e-4, "WeightDecay": optim.ZERO, "Maximize": True}],
    ],
    "Lion": [
        [{}], [{"WeightDecay": 1}], [{"LR": 0.1}], [{"LR": 0.1, "WeightDecay": 0.1}],
        [{"LR": 0.1, "Beta1": 0.8, "Beta2": 0.9, "WeightDecay": 0.1}],
        [{"LR": 0.1, "WeightDecay": 0.1, "Maximize": True}],
        [{"LR": 0.1, "WeightDecay": 0.3}, {"LR": 0.03, "Beta1": 0.5}],
    ],
}


def packages(*paths):
    """Make packages of folders without what their __init__.py imports."""
    for name, path in paths:
        sys.modules[name] = types.ModuleType(name)
        sys.modules[name].__path__ = [path]


def makers(timm, automl):
    packages(("timm", timm + "/timm"), ("timm.optim", timm + "/timm/optim"), ("lion", automl + "/lion"))
    lamb = importlib.import_module("timm.optim.lamb").Lamb
    lion = importlib.import_module("lion.lion_pytorch").Lion
    return {
        "LAMB": lambda p, args: lamb([p], max_grad_norm=None, always_adapt=True, **args),
        "AdamW": lambda p, args: lamb([p], max_grad_norm=None, **args),
        "Lion": lambda p, args: lion([p], **args),
    }


class Each:
    """An optimiser for each parameter: timm counts the steps of a group, torch a parameter's.
    To climb, which neither can, is to descend by the gradient's opposite."""

    def __init__(self, make, params, configs):
        self.each = []
        for p, config in zip(params, configs):
            climb = config.pop("maximize", False)
            self.each.append((p, climb, make(p, config)))

    def step(self):
        for p, climb, optimizer in self.each:
            if p.grad is not None:
                p.grad = -p.grad if climb else p.grad
                optimizer.step()


def main():
    make = makers(*sys.argv[1:3])

    def build(name, groups):
        params = [torch.tensor(x) for x in optim.START]
        configs = groups if len(groups) > 1 else groups * len(params)
        return params, Each(make[name], params, [optim.settings(name, c) for c in configs])

    with open(sys.argv[3], "w") as out:
        print(json.dumps({"torch": torch.__version__, "from": FROM}), file=out)
        for name, cases in CASES.items():
            for groups in cases:
                case = optim.train(name, groups, build=build)
                print(json.dumps(case, separators=(",", ":")), file=out)


main()
