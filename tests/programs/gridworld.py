"""TD(lambda) in a grid world with dictionaries of states; log-likelihood of choices (behavioural modelling)."""
import numpy as np

ACTIONS = {"N": (-1, 0), "S": (1, 0), "E": (0, 1), "W": (0, -1)}


class GridWorld:
    def __init__(self, layout):
        self.layout = layout
        self.walls = {(i, j) for i, row in enumerate(layout) for j, c in enumerate(row) if c == "#"}
        self.goal = next((i, j) for i, row in enumerate(layout) for j, c in enumerate(row) if c == "G")
        self.shape = (len(layout), len(layout[0]))

    def move(self, state, action):
        di, dj = ACTIONS[action]
        i, j = state[0] + di, state[1] + dj
        if not (0 <= i < self.shape[0] and 0 <= j < self.shape[1]) or (i, j) in self.walls:
            return state, -1.0
        return (i, j), 10.0 if (i, j) == self.goal else -0.1


def softmax_policy(q, state, beta):
    values = np.array([q[state, a] for a in ACTIONS])
    z = np.exp(beta * (values - values.max()))
    return z / z.sum()


def loss(theta, episodes, layout):
    alpha = 1 / (1 + np.exp(-theta[0]))
    gamma = 1 / (1 + np.exp(-theta[1]))
    beta = np.exp(theta[2])
    lam = 1 / (1 + np.exp(-theta[3]))
    world = GridWorld(layout)
    q = {}
    for i in range(world.shape[0]):
        for j in range(world.shape[1]):
            for a in ACTIONS:
                q[(i, j), a] = 0.0
    names = list(ACTIONS)
    loss = 0.0
    for start, actions in episodes:
        trace = {}
        state = start
        for k, a in enumerate(actions):
            probs = softmax_policy(q, state, beta)
            loss -= np.log(probs[names.index(a)])
            nxt, reward = world.move(state, a)
            done = nxt == world.goal
            best = 0.0 if done else max(q[nxt, b] for b in names)
            delta = reward + gamma * best - q[state, a]
            trace[state, a] = 1.0
            for key in trace:
                q[key] += alpha * delta * trace[key]
                trace[key] = trace[key] * gamma * lam
            state = nxt
            if done:
                break
    return loss + 0.05 * np.sum(theta ** 2)


def make(k):
    layout = [["..#G", "..#.", "....", "#..."], ["...", ".#.", "..G"]][k]
    episodes = [
        [((0, 0), "SSEENEN"), ((2, 0), "EEENN"), ((3, 1), "NEENN")],
        [((0, 0), "SSEE"), ((0, 2), "WWSSEE"), ((2, 0), "NNEESS"), ((0, 1), "NESS")],
    ][k]
    return (np.array([-0.5, 1.5, 0.1, 0.3]), episodes, layout), 1
