"""An agent with a configuration file of its own, beside a server that is started alone."""
import os

from drover import wait_until


def start(instance, config, name="n1", program="drover-agent", token=()):
    """Writes the file (without the server's address) and starts the agent, which joins with a token of these options; call again to start it
    again."""
    folder = os.path.join(instance.base, name)
    path = folder + ".yaml"
    with open(path, "w", encoding="utf-8") as f:
        f.write(f"server: {instance.server_json()['agents'][0]}\ndir: {folder}\n{config}")
    args = ["--config", path]
    if not os.path.exists(os.path.join(folder, "agent.crt")):
        args += ["--token", instance.json("token", "agent", "--name", name, *token)["token"]]
    return instance.start(program, *args)


def queues(instance, count, name="n1"):
    """Waits until the agent offers so many queues; returns them by name."""

    def offered():
        """the agent's queues are offered"""
        for agent in instance.agents("connected"):
            if agent["name"] == name and len(agent["queues"]) == count:
                return {q["name"]: q for q in agent["queues"]}
        return None

    return wait_until(offered)


def batch_queues(*systems, more=""):
    """A file with a queue of each batch system, under its name."""
    text = "kill_grace: 1s\nqueues:\n"
    for one in systems:
        words = ", ".join(f"{name}: '{value}'" for name, value in one.settings.items())
        text += f"  - name: {one.name}\n    runner: {one.runner}\n    {one.runner}: {{{words}}}\n{more}"
    return text


def offering(instance, queue=None):
    """Waits until the queue (or any) offers processors."""

    def offers():
        """a queue offers processors"""
        for agent in instance.agents("connected"):
            for q in agent["queues"]:
                if queue in (None, q["name"]) and q["offer"] and q["free"]["cpus"] > 0:
                    return q
        return None

    return wait_until(offers)
