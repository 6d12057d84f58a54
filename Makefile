# Times for the long forms; CI runs the fuzz targets for seconds each.
FUZZTIME ?= 10m
BENCHTIME ?= 1s
LINT = github.com/golangci/golangci-lint/v2/cmd/golangci-lint@v2.15.0

.PHONY: check test lint golden matrix networks again scale plans worlds faults soak nat netns hostile kills crowd page pages pictures releases torch-golden file-golden fuzz bench seeds

check: ## what CI runs
	bash .ci/run

test: ## the README's test command
	go test ./... -race -shuffle=on

lint: ## the rules of .golangci.yml; the first run compiles the linter
	go run $(LINT) run ./...

golden: ## write the printed schedules anew, after looking at the difference
	go test ./ops/schedule -run Golden -update
	git diff --stat -- ops/schedule/testdata

networks: ## the conformance suites on every network, sockets and whole QUIC too
	PEERMESH_NETWORKS=1 go test ./testnet/... -run Mesh -v -timeout 10m

again: ## 50 runs of one seed give one trace, in memory and on modelled links
	PEERMESH_AGAIN=1 go test ./testnet/... -run 'SameAgain' -v -timeout 10m

SCALE ?= 10,100,1000
scale: ## what worlds of so many nodes take: the last needs minutes of two quiet cores, and 8 GiB
	GOGC=200 GOMEMLIMIT=7GiB PEERMESH_SCALE=$(SCALE) go test ./testnet/scale -run '^TestScale$$' -v -timeout 30m

plans: ## 1,000 random fault plans, each lived through; one that is not is shrunk
	PEERMESH_PLANS=1000 go test ./testnet/scenario -run '^TestPlans$$' -v -timeout 2h

worlds: ## 1,000 worlds of 8 nodes over modelled links
	PEERMESH_WORLDS=1000 go test ./testnet/simlink -run Worlds -v -timeout 10m

FAULTS ?= 10m
faults: ## four processes train while they are killed, stopped and started again
	PEERMESH_FAULTS=$(FAULTS) go test ./cmd/peer -run 'Faults$$' -v -timeout 60m

soak: ## messages of gigabytes, on real nodes
	PEERMESH_SOAK=1 go test ./testnet -run Soak -v -timeout 20m

NAT ?= full
nat: ## two peers behind NATs, in network namespaces: needs root, ip and nft
	PEERMESH_NAT=$(NAT) go test ./node -run '^TestNAT$$' -v -timeout 5m

NETNS ?= 20s
netns: ## peers train on machines that are network namespaces, cut in two for so long: needs root and ip
	PEERMESH_NETNS=$(NETNS) go test ./cmd/peer -run '^Test(TwoMachines|Partition)$$' -v -timeout 15m

HOSTILE ?= 20s
hostile: ## how much 100 hostile connections slow down two members, and a training: needs a quiet machine
	PEERMESH_HOSTILE=$(HOSTILE) go test ./node -run '^TestHostileSlowdown$$' -v -timeout 10m
	PEERMESH_HOSTILE=$(HOSTILE) go test ./cmd/peer -run '^TestHostileTraining$$' -v -timeout 10m

kills: ## 1,000 processes killed while they share memory, under the race detector
	PEERMESH_KILLS=1000 go test -race -run 'TestKill$$' -v -timeout 60m ./node/internal/shm

crowd: ## 64 ranks on as many processors as there are reduce 1 MiB: needs a quiet machine
	PEERMESH_CROWD=1 go test ./cmd/peer -run '^TestBenchCrowd$$' -v -timeout 5m

page: ## the page of --http in Chromium: needs chromium and chromedriver, or else it says that it skips
	go test -count=1 -v -timeout 10m -run Page ./cmd/peer/internal/watch

releases: ## a peer of another version is refused, with what to do; the Dockerfile's steps: builds anew
	PEERMESH_RELEASES=1 go test ./cmd/peer -run '^TestFailureVersion$$' -v -timeout 10m
	PEERMESH_DOCKER=1 go test ./examples/deploy -run '^TestDockerSteps$$' -v -timeout 20m

pages: ## run every command of every page, the long ones too, on the real MNIST: tens of minutes
	PEERMESH_DOC=1 go test ./doc -run '^TestCommands$$' -v -timeout 2h

pictures: ## make the pictures of the pages anew; look at them before you commit: needs chromium
	go build -o bin/peer ./cmd/peer
	PATH=$(CURDIR)/bin:$$PATH go run ./doc/pictures -o doc/pictures/terminal.svg -- peer launch -n 4
	bin/peer schedule all-reduce --ranks 4 --algorithm ring --svg doc/pictures/ring.svg
	bin/peer launch -n 4 --steps 400 --http :8087 & sleep 20; \
	chromium --headless --no-sandbox --hide-scrollbars --window-size=1200,1097 --timeout=5000 --screenshot=doc/pictures/page.png http://127.0.0.1:8087/; wait

torch-golden: ## ask PyTorch anew, with Debian's python3-torch and libopenblas0
	/usr/bin/python3 ops/testdata/torch/generate.py ops/testdata/torch/golden.jsonl
	/usr/bin/python3 trainer/testdata/torch/optim.py trainer/testdata/torch/optim.jsonl
	/usr/bin/python3 trainer/compress/testdata/torch/powersgd.py trainer/compress/testdata/torch/powersgd.jsonl
	/usr/bin/python3 trainer/nn/layers/testdata/torch/layers.py
	git diff --stat -- ops/testdata/torch trainer/testdata/torch trainer/compress/testdata/torch trainer/nn/layers/testdata/torch

file-golden: ## write other programs' files anew, with Debian's python3-numpy
	/usr/bin/python3 trainer/safetensors/testdata/golden.py trainer/safetensors/testdata
	/usr/bin/python3 trainer/data/npy/testdata/golden.py trainer/data/npy/testdata
	git diff --stat -- trainer/safetensors/testdata trainer/data/npy/testdata

fuzz: ## every fuzz target, FUZZTIME each
	@bash .ci/fuzz $(FUZZTIME)

matrix: ## every operation × type × reduction × world × size × algorithm: minutes
	go test ./ops -run '^TestMatrix$$' -matrix -v -timeout 2h

bench: ## every benchmark
	go test ./... -run '^$$' -bench . -benchtime $(BENCHTIME) -benchmem

seeds: ## 10,000 random fault plans, 100,000 random histories, and a death at every round: hours
	go test ./mesh -run '^TestSeeds$$' -seeds 10000 -timeout 12h
	go test ./mesh -run '^TestNeverTwoWorlds$$' -histories 100000 -timeout 1h
	go test ./testnet -run '^TestKillAtEveryRound$$' -rounds -timeout 12h
	go test ./mesh -run '^TestSparseWorld$$' -big
