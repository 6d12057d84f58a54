package mesh

import (
	"errors"
	"fmt"
	"net"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"

	"peermesh/node"
)

// The variables that FromEnv reads, and that peer launch sets. A list is separated by
// commas or spaces.
const (
	EnvBootstrap  = "PEERMESH_BOOTSTRAP"  // whom to meet first: see Config.Bootstrap
	EnvDHT        = "PEERMESH_DHT"        // multiaddrs of peers that serve the DHT, for the form dht
	EnvWorld      = "PEERMESH_WORLD"      // ranks
	EnvMin        = "PEERMESH_MIN"        // ranks that do later: Config.Min
	EnvQuorum     = "PEERMESH_QUORUM"     // majority or any
	EnvMesh       = "PEERMESH_MESH"       // the mesh's name
	EnvWait       = "PEERMESH_WAIT"       // how long a world may take to form, as 5m
	EnvIdentity   = "PEERMESH_IDENTITY"   // key file
	EnvState      = "PEERMESH_STATE"      // Config.State; with a Min, Identity + ".world"
	EnvListen     = "PEERMESH_LISTEN"     // multiaddrs
	EnvTransports = "PEERMESH_TRANSPORTS" // of node.Config
	EnvSecret     = "PEERMESH_SECRET"     // file of a private network's secret
	EnvAllow      = "PEERMESH_ALLOW"      // file of the peers that may connect
	EnvPort       = "PEERMESH_PORT"       // where the first process of Slurm or Kubernetes listens
	EnvService    = "PEERMESH_SERVICE"    // the headless service of a Kubernetes job
)

// DefaultPort is where the first process listens if nobody says otherwise; torchrun's.
const DefaultPort = 29500

// FromEnv is what the environment says of this process's place: how to start its node
// and which mesh to join. Whoever starts processes in numbers speaks one of these:
//
//	peer launch            PEERMESH_WORLD, PEERMESH_BOOTSTRAP, PEERMESH_IDENTITY …
//	torchrun and its like  WORLD_SIZE, RANK, MASTER_ADDR, MASTER_PORT
//	Slurm, under srun      SLURM_NTASKS, SLURM_PROCID, SLURM_JOB_NODELIST, SLURM_JOB_ID
//	Kubernetes             JOB_COMPLETION_INDEX, HOSTNAME and, set by the manifest,
//	                       PEERMESH_WORLD and PEERMESH_SERVICE
//
// What PEERMESH variables say holds, then what torchrun's do, then those of the two
// schedulers. In all but the first the process with number 0 listens on a port that
// the others are given as tcp://HOST:PORT, and that is all its number means: a rank is
// the place of a peer's ID among all. An error names the variable to set or to mend.
func FromEnv() (node.Config, Config, error) {
	e := environ{get: os.Getenv}
	n, c, err := e.configs()
	if path := e.get(EnvSecret); err == nil && path != "" {
		if n.Secret, err = node.ReadSecret(path); err != nil {
			err = fmt.Errorf("mesh: %s: %w", EnvSecret, err)
		}
	}
	if path := e.get(EnvAllow); err == nil && path != "" {
		if n.Allow, err = node.ReadAllow(path); err != nil {
			err = fmt.Errorf("mesh: %s: %w", EnvAllow, err)
		}
	}
	return n, c, err
}

// An environ is the variables of a process. Its errors name them.
type environ struct{ get func(name string) string }

// configs reads all but the files that variables name.
func (e environ) configs() (n node.Config, c Config, err error) {
	from := e.scheduler()
	c = Config{Name: e.get(EnvMesh), State: e.get(EnvState), DHT: e.list(EnvDHT)}
	n = node.Config{Identity: e.get(EnvIdentity), Listen: e.list(EnvListen), Transports: e.list(EnvTransports)}
	if c.World, err = e.world(); err != nil {
		return n, c, err
	}
	n.Peers = max(c.World, node.DefaultPeers)
	if c.Name == "" {
		c.Name = from.job
	}
	if c.Min, err = e.count(EnvMin, 0, c.World); err != nil {
		return n, c, err
	}
	if c.State == "" && c.Min > 0 && n.Identity != "" {
		c.State = n.Identity + ".world"
	}
	if c.Wait, err = e.duration(EnvWait); err != nil {
		return n, c, err
	}
	switch q := e.get(EnvQuorum); q {
	case "", Majority.String():
	case Any.String():
		c.Quorum = Any
	default:
		return n, c, fmt.Errorf("mesh: %s is %q, want %s or %s", EnvQuorum, q, Majority, Any)
	}
	if c.Bootstrap = e.list(EnvBootstrap); len(c.Bootstrap) > 0 || c.World == 1 {
		return n, c, nil
	}
	first, err := e.first(from)
	if err != nil {
		return n, c, err
	}
	c.Bootstrap = []string{"tcp://" + net.JoinHostPort(first.host, strconv.Itoa(first.port))}
	if first.self && len(n.Listen) == 0 {
		n.Listen = []string{first.listen()}
	}
	return n, c, nil
}

// A first is the process that the others are told of.
type first struct {
	host string
	port int
	self bool // it is this one
}

// listen is the address that it listens on: all of the machine, unless it is
// called by its loopback.
func (f first) listen() string {
	ip := net.ParseIP(f.host)
	switch {
	case f.host == "localhost":
		ip = net.IPv4(127, 0, 0, 1)
	case ip == nil:
		ip = net.IPv4zero
	case ip.To4() == nil && !ip.IsLoopback():
		ip = net.IPv6unspecified
	case !ip.IsLoopback():
		ip = net.IPv4zero
	}
	if ip.To4() == nil {
		return fmt.Sprintf("/ip6/%s/tcp/%d", ip, f.port)
	}
	return fmt.Sprintf("/ip4/%s/tcp/%d", ip, f.port)
}

// first finds the process with number 0, by whichever names it.
func (e environ) first(from scheduler) (f first, err error) {
	number := from.number
	switch addr := e.get("MASTER_ADDR"); {
	case addr != "":
		f.host, number = addr, "RANK"
		if f.port, err = e.count("MASTER_PORT", DefaultPort, maxPort); err != nil {
			return f, err
		}
	case from.host == nil:
		return f, fmt.Errorf("mesh: %s is not set, and neither is MASTER_ADDR: set it to whom this process meets first, "+
			"such as tcp://HOST:%d, or start the program by peer launch", EnvBootstrap, DefaultPort)
	default:
		if f.host, err = from.host(e); err != nil {
			return f, err
		}
		if f.port, err = e.count(EnvPort, from.port, maxPort); err != nil {
			return f, err
		}
	}
	if e.get(number) == "" {
		return f, fmt.Errorf("mesh: %s is not set: the process whose %s is 0 listens for the others at %s", number, number, f.host)
	}
	n, err := e.index(number)
	f.self = n == 0
	return f, err
}

const maxPort = 65535

// world is the number of ranks.
func (e environ) world() (int, error) {
	names := []string{EnvWorld, "WORLD_SIZE", "SLURM_NTASKS"}
	i := slices.IndexFunc(names, func(name string) bool { return e.get(name) != "" })
	if i < 0 {
		return 0, fmt.Errorf("mesh: %s is not set, and neither is %s or %s: it is the number of ranks",
			names[0], names[1], names[2])
	}
	return e.count(names[i], 0, MaxWorld)
}

// count is a number from 1 to most, or otherwise if the variable is not set.
func (e environ) count(name string, otherwise, most int) (int, error) {
	text := e.get(name)
	if text == "" {
		return otherwise, nil
	}
	n, err := strconv.Atoi(text)
	if err != nil || n < 1 || n > most {
		return 0, fmt.Errorf("mesh: %s is %q, want a number from 1 to %d", name, text, most)
	}
	return n, nil
}

// index is a process's number among others, from 0.
func (e environ) index(name string) (int, error) {
	n, err := strconv.Atoi(e.get(name))
	if err != nil || n < 0 {
		return 0, fmt.Errorf("mesh: %s is %q, want a number from 0", name, e.get(name))
	}
	return n, nil
}

func (e environ) duration(name string) (time.Duration, error) {
	text := e.get(name)
	if text == "" {
		return 0, nil
	}
	d, err := time.ParseDuration(text)
	if err == nil && d <= 0 {
		err = errors.New("it is not positive")
	}
	if err != nil {
		return 0, fmt.Errorf("mesh: %s is %q, want a time such as 5m: %w", name, text, err)
	}
	return d, nil
}

func (e environ) list(name string) []string {
	return strings.FieldsFunc(e.get(name), func(r rune) bool { return r == ',' || r == ' ' || r == '\t' || r == '\n' })
}
