#!/usr/bin/python3
"""Write what PyTorch makes of the layers, for golden_test.go to compare.

    /usr/bin/python3 trainer/nn/layers/testdata/torch/layers.py

needs Debian's python3-torch. It writes beside itself, the same on every run:

    layers.jsonl             each line one case: the layer's name, a batch x, what is
                             given to backward (dy), and what comes of them: y, dx,
                             the parameters, their gradients and the buffers after
    resnet.safetensors       a model's state_dict, and what it makes of a batch,
    transformer.safetensors  golden.x and golden.labels: golden.y in evaluation,
                             golden.loss and golden.grad.NAME in training
"""

import json
import os
import struct
import warnings

import torch
import torch.nn as nn
import torch.nn.functional as F

warnings.filterwarnings("ignore")
torch.set_num_threads(1)
HERE = os.path.dirname(os.path.abspath(__file__))


def flat(x):
    return [float(f"{v:.7g}") for v in x.detach().reshape(-1).tolist()]


def scramble(module):
    with torch.no_grad():
        for p in module.parameters():
            p.mul_(0.5).add_(torch.randn(p.shape) * 0.3)


class Attention(nn.Module):
    def __init__(self, width, heads, causal):
        super().__init__()
        self.m = nn.MultiheadAttention(width, heads, batch_first=True)
        self.causal = causal

    def forward(self, x):
        t = x.shape[1]
        mask = torch.triu(torch.full((t, t), float("-inf")), 1) if self.causal else None
        return self.m(x, x, x, attn_mask=mask, need_weights=False)[0]


class Position(nn.Module):
    def __init__(self, positions, width):
        super().__init__()
        self.m = nn.Embedding(positions, width)

    def forward(self, x):
        return x + self.m(torch.arange(x.shape[1]))


CASES = [
    ("linear", nn.Linear(7, 30), (5, 7)),
    ("conv", nn.Conv2d(3, 5, 3), (3, 9, 8)),
    ("conv padded", nn.Conv2d(2, 3, 5, padding=2, bias=False), (2, 6, 5)),
    ("conv in strides", nn.Conv2d(2, 4, 3, stride=2, padding=1), (2, 7, 10)),
    ("conv of one in strides", nn.Conv2d(3, 4, 1, stride=2), (3, 7, 6)),
    ("conv in long strides", nn.Conv2d(2, 2, 2, stride=5, padding=1), (2, 11, 12)),
    ("max pool", nn.MaxPool2d(3, 2, 1), (2, 6, 7)),
    ("avg pool", nn.AvgPool2d(3, 2, 1), (2, 6, 7)),
    ("global avg pool", nn.Sequential(nn.AdaptiveAvgPool2d(1), nn.Flatten()), (3, 4, 5)),
    ("relu", nn.ReLU(), (40,)),
    ("gelu", nn.GELU(), (40,)),
    ("gelu tanh", nn.GELU(approximate="tanh"), (40,)),
    ("batch norm", nn.BatchNorm2d(3), (3, 4, 2)),
    ("layer norm", nn.LayerNorm(6), (3, 6)),
    ("embedding", nn.Embedding(5, 20), (4,)),
    ("position", Position(3, 4), (3, 4)),
    ("attention", Attention(8, 2, True), (6, 8)),
    ("attention to all", Attention(8, 1, False), (12, 8)),
]


def layers(file):
    file.write(json.dumps({"torch": torch.__version__}) + "\n")
    for name, module, shape in CASES:
        scramble(module)
        n = 3
        if isinstance(module, nn.Embedding):
            x = torch.randint(0, 5, (n,) + shape)
        else:
            x = torch.randn((n,) + shape, requires_grad=True)
        case = {
            "name": name,
            "x": flat(x.float()),
            "params": [flat(p) for p in module.parameters()],
        }
        y = module(x)
        dy = torch.randn(y.shape)
        y.backward(dy)
        case["y"], case["dy"] = flat(y), flat(dy)
        if x.grad is not None:
            case["dx"] = flat(x.grad)
        case["grads"] = [flat(p.grad) for p in module.parameters()]
        case["buffers"] = [flat(b.float()) for b in module.buffers()]
        module.eval()
        case["evaluated"] = flat(module(x))
        file.write(json.dumps(case) + "\n")

    for name, reduce in [("cross entropy", True), ("mse", False)]:
        z = torch.randn((6, 5), requires_grad=True)
        case = {"name": name}
        if reduce:
            labels = torch.tensor([0, 4, -100, 2, 2, -100])
            loss = F.cross_entropy(z, labels)
            case["labels"] = labels.tolist()
        else:
            targets = torch.randn(6, 5)
            loss = F.mse_loss(z, targets)
            case["targets"] = flat(targets)
        loss.backward()
        case.update(x=flat(z), loss=loss.item(), dx=flat(z.grad))
        file.write(json.dumps(case) + "\n")


class Block(nn.Module):
    """torchvision's BasicBlock."""

    def __init__(self, ins, outs, stride):
        super().__init__()
        self.conv1 = nn.Conv2d(ins, outs, 3, stride, 1, bias=False)
        self.bn1 = nn.BatchNorm2d(outs)
        self.conv2 = nn.Conv2d(outs, outs, 3, 1, 1, bias=False)
        self.bn2 = nn.BatchNorm2d(outs)
        self.downsample = None
        if stride != 1 or ins != outs:
            self.downsample = nn.Sequential(
                nn.Conv2d(ins, outs, 1, stride, bias=False), nn.BatchNorm2d(outs)
            )

    def forward(self, x):
        y = self.bn2(self.conv2(F.relu(self.bn1(self.conv1(x)))))
        return F.relu(y + (x if self.downsample is None else self.downsample(x)))


class ResNet(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.conv1 = nn.Conv2d(1, width, 3, 1, 1, bias=False)
        self.bn1 = nn.BatchNorm2d(width)
        self.layer1 = nn.Sequential(Block(width, width, 1))
        self.layer2 = nn.Sequential(Block(width, 2 * width, 2))
        self.layer3 = nn.Sequential(Block(2 * width, 4 * width, 2))
        self.fc = nn.Linear(4 * width, 10)

    def forward(self, x):
        x = F.relu(self.bn1(self.conv1(x)))
        return self.fc(self.layer3(self.layer2(self.layer1(x))).mean((2, 3)))


class Transformer(nn.Module):
    def __init__(self, vocabulary, context, width, heads, blocks):
        super().__init__()
        self.embed = nn.Embedding(vocabulary, width)
        self.position = nn.Embedding(context, width)
        layer = nn.TransformerEncoderLayer(
            width, heads, 2 * width, 0.0, lambda x: F.gelu(x, approximate="tanh"),
            batch_first=True, norm_first=True,
        )
        self.encoder = nn.TransformerEncoder(layer, blocks, nn.LayerNorm(width))
        self.head = nn.Linear(width, vocabulary, bias=False)

    def forward(self, x):
        t = x.shape[1]
        mask = torch.triu(torch.full((t, t), float("-inf")), 1)
        x = self.embed(x) + self.position(torch.arange(t))
        return self.head(self.encoder(x, mask))


DTYPES = {torch.float32: ("F32", "f"), torch.int64: ("I64", "q")}


def save(name, tensors):
    """The format of safetensors: a length, JSON, the elements."""
    order = sorted(tensors, key=lambda k: (-tensors[k].element_size(), k))
    header, data = {}, b""
    for key in order:
        x = tensors[key].detach().contiguous()
        kind, code = DTYPES[x.dtype]
        values = x.reshape(-1).tolist()
        piece = struct.pack(f"<{len(values)}{code}", *values)
        header[key] = {"dtype": kind, "shape": list(x.shape), "data_offsets": [len(data), len(data) + len(piece)]}
        data += piece
    text = json.dumps(header, separators=(",", ":")).encode()
    text += b" " * (-len(text) % 8)
    with open(os.path.join(HERE, name), "wb") as file:
        file.write(struct.pack("<Q", len(text)) + text + data)


def model(name, m, x, labels, train, grads):
    """Train a little, so that running statistics are used, and then evaluate."""
    sgd = torch.optim.SGD(m.parameters(), lr=0.1)
    m.train()
    for _ in range(train):
        sgd.zero_grad()
        F.cross_entropy(m(x).flatten(0, -2), labels.flatten()).backward()
        sgd.step()
    state = {k: v.clone() for k, v in m.state_dict().items()}
    state["golden.x"], state["golden.labels"] = x.float(), labels
    m.zero_grad()
    loss = F.cross_entropy(m(x).flatten(0, -2), labels.flatten())
    loss.backward()
    state["golden.loss"] = loss.detach()
    for key, p in m.named_parameters():
        if key in grads:
            state["golden.grad." + key] = p.grad
    m.load_state_dict({k: v for k, v in state.items() if not k.startswith("golden.")})
    m.eval()
    state["golden.y"] = m(x)
    save(name, state)


if __name__ == "__main__":
    torch.manual_seed(1)
    with open(os.path.join(HERE, "layers.jsonl"), "w") as out:
        layers(out)
    model("resnet.safetensors", ResNet(4), torch.randn(4, 1, 28, 28), torch.randint(0, 10, (4,)), 3,
          {"conv1.weight", "layer2.0.downsample.0.weight", "layer3.0.bn2.weight", "fc.bias"})
    x = torch.randint(0, 60, (2, 12))
    model("transformer.safetensors", Transformer(60, 12, 16, 2, 2), x, x.roll(-1, 1), 3,
          {"embed.weight", "position.weight", "encoder.layers.0.self_attn.in_proj_weight",
           "encoder.layers.1.linear1.bias", "head.weight"})
