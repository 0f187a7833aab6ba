"""Two servers on a PostgreSQL that fails over by itself, with Patroni and etcd: its primary dies under load, alone and together with the
server that leads, and then loses only its Patroni. What was acknowledged ends once, and runs once."""
import collections
import signal

import pytest

from drover import wait_until
from patroni_cluster import LIMIT, Cluster
from test_no_single_point import Clients, Servers

OF_ONE = 10


def going_on(servers, clients):
    """Submits are taken again; servers that have ended meanwhile are started again."""
    enough = len(clients.taken) + 5

    def taken():
        """more requests are taken"""
        return servers.leader() and len(clients.taken) >= enough

    wait_until(taken, LIMIT)


def without_patroni(cluster, servers, clients):
    """The primary goes on without its Patroni while the other one is promoted. It has no standby then and acknowledges nothing, even if
    sessions that wait for one are ended."""
    old, seen = cluster.primary(), set()
    old.kill_patroni()
    wait_until(cluster.primary, LIMIT)
    before = len(clients.taken)

    def seen_by_the_servers():
        """they have been stuck at the old one, or have found the new one"""
        seen.update(old.sql("SELECT pid FROM pg_stat_activity WHERE wait_event = 'SyncRep'").split())
        return len(seen) > 1 or len(clients.taken) > before + 1

    wait_until(seen_by_the_servers, LIMIT)
    old.start()
    cluster.complete()
    going_on(servers, clients)


@pytest.mark.long
@pytest.mark.timeout(1200)
def test_patroni_promotes_the_standby(instance, request):
    cluster = Cluster()
    servers = None
    try:
        cluster.start()
        servers = Servers(instance, request, cluster.database("d1"), count=2)
        servers.agents(2)
        clients = Clients(servers, OF_ONE)
        try:
            going_on(servers, clients)
            for with_leader in (False, True):
                old = cluster.lose()
                if with_leader:
                    servers.lose(signal.SIGKILL)
                wait_until(cluster.primary, LIMIT)
                going_on(servers, clients)
                old.start()
                cluster.complete()
                going_on(servers, clients)
            without_patroni(cluster, servers, clients)
        finally:
            clients.stop()
        print(f"{len(clients.taken)} requests of {OF_ONE} jobs; submitting stopped for {clients.longest:.1f} s at most")
        clients.ended_once(servers.leader())
        assert set(collections.Counter(instance.read("ran").split()).values()) == {1}
    except AssertionError as e:
        raise AssertionError(f"{e}\n{cluster.logs()}") from e
    finally:
        if servers:
            servers.stop()
        cluster.remove()
