package main

import (
	"context"
	"fmt"
	"net"
	"net/url"
	"slices"
	"strings"
	"time"

	"peermesh/node"
	"peermesh/node/rendezvous"
	_ "peermesh/node/rendezvous/dht" // for --bootstrap dht
)

// resolvePatience bounds the question whether a host is this machine.
const resolvePatience = 5 * time.Second

// checkBootstrap finds what is no multiaddr with an ID and no rendezvous either.
func checkBootstrap(a string) error {
	if !rendezvous.Is(a) {
		_, err := node.ParseAddr(a)
		return err
	}
	_, err := rendezvous.Parse(a, rendezvous.Config{})
	return err
}

// checkDHT finds what is no peer of a DHT.
func checkDHT(peers []string) error {
	for _, a := range peers {
		if _, err := node.ParseAddr(a); err != nil {
			return fmt.Errorf("--dht %s: %w", a, err)
		}
	}
	return nil
}

// namedPeers are those bootstrap addresses that say who is there.
func namedPeers(bootstrap []string) []string {
	return slices.DeleteFunc(slices.Clone(bootstrap), rendezvous.Is)
}

// meetingPlace is all that a peer listens on whom the others are told to find on this
// machine; nil if that is nobody. It may have to ask the name service.
func meetingPlace(ctx context.Context, bootstrap []string, transport string) []string {
	ports := meetingPorts(ctx, bootstrap)
	if len(ports) == 0 {
		return nil
	}
	return append(ports, besides(transport)...)
}

// meetingPorts are where this machine has to listen for the others to find it: at each
// tcp://host:port whose host is this machine.
func meetingPorts(ctx context.Context, bootstrap []string) (listen []string) {
	for _, form := range bootstrap {
		u, err := url.Parse(form)
		if err != nil || u.Scheme != "tcp" {
			continue
		}
		soon, cancel := context.WithTimeout(ctx, resolvePatience)
		ips, err := net.DefaultResolver.LookupIP(soon, "ip", u.Hostname())
		cancel()
		if err != nil {
			continue // it will be reported when it is dialled
		}
		for _, a := range listenAt(ips, u.Port(), u.Hostname()) {
			if !slices.Contains(listen, a) {
				listen = append(listen, a)
			}
		}
	}
	return listen
}

// listenAt are the addresses to listen on if some of a host's are this machine's. One
// that is called by its loopback listens there alone; a name may have the loopback
// among its addresses on its own machine, and means all.
func listenAt(ips []net.IP, port, host string) (listen []string) {
	literal := net.ParseIP(host) != nil || host == "localhost"
	for _, ip := range ips {
		if !isOwn(ip) {
			continue
		}
		family, any := "ip6", "::"
		if ip.To4() != nil {
			family, any = "ip4", "0.0.0.0"
		}
		if ip.IsLoopback() && literal {
			any = ip.String()
		}
		listen = append(listen, fmt.Sprintf("/%s/%s/tcp/%s", family, any, port))
	}
	return listen
}

// isOwn reports whether an address is this machine's.
func isOwn(ip net.IP) bool {
	addrs, err := net.InterfaceAddrs()
	return err == nil && (ip.IsLoopback() || slices.ContainsFunc(addrs, func(a net.Addr) bool {
		own, ok := a.(*net.IPNet)
		return ok && own.IP.Equal(ip)
	}))
}

// besides are the addresses to listen on as well, by what --transport says.
func besides(transport string) []string {
	if transport == "all" || transport == node.QUIC {
		return []string{"/ip4/0.0.0.0/udp/0/quic-v1"}
	}
	return nil
}

// overTCPOnly reports whether a peer can listen at a tcp://host:port at all.
func overTCPOnly(transport string) bool { return strings.Contains("all tcp", transport) }
