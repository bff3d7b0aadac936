"""What one would write first: the transformation-invariant machine in plain torch, with dense operators."""

import torch
from torch import Tensor


class PlainTIRBM:
    """A binary TIRBM that learns as `TIRBM` does, with sparsity, momentum and weight decay."""

    def __init__(self, K: int, T: Tensor, cost: float = 3.0, target: float = 0.1) -> None:
        self.S, self.D2, self.D1 = T.shape
        self.T = T.reshape(-1, self.D1)  # (S D2, D1)
        self.cost, self.target = cost, target
        self.W, self.b, self.c = 0.02 * torch.randn(K, self.D2), torch.full((K, self.S), -5.0), torch.zeros(self.D1)
        self.moving = [torch.zeros_like(t) for t in (self.W, self.b, self.c)]

    def update(self, v: Tensor) -> None:
        """Descend by one batch, (N, D1)."""
        N = len(v)
        u, p = self._up(v)
        z = p.sum(-1)
        edges = p.cumsum(-1)
        chance = torch.rand(N, len(self.W), 1)
        h = ((chance < edges) & (chance >= edges - p)).float()
        back = torch.sigmoid((h.transpose(1, 2) @ self.W).reshape(N, -1) @ self.T + self.c)
        u_, p_ = self._up(back)

        slope = 2 * (z.mean(0) - self.target)
        tilted = p * (1 - self.cost * slope * (1 - z))[..., None]
        W = torch.einsum("nks,nsd->kd", p_, u_) - torch.einsum("nks,nsd->kd", tilted, u)
        gradients = W / N + 1e-4 * self.W, (p_ - tilted).mean(0), (back - v).mean(0)
        for t, velocity, gradient in zip((self.W, self.b, self.c), self.moving, gradients, strict=True):
            velocity.mul_(0.9).sub_(gradient, alpha=0.05)
            t += velocity

    def _up(self, v: Tensor) -> tuple[Tensor, Tensor]:
        """Inputs in every pose, (N, S, D2), and the probability of each pose, (N, K, S)."""
        u = (v @ self.T.T).view(len(v), self.S, self.D2)
        a = (u @ self.W.T).transpose(1, 2) + self.b
        off = torch.zeros(len(v), len(self.W), 1)
        return u, torch.softmax(torch.cat([off, a], -1), -1)[..., 1:]
