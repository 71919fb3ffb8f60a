# Short names for what one types every day. .ci/run is what counts.

.PHONY: test race integration sim soak mutation docker docker-soak fencing adapters fuzz bench bench-report lint vuln demo ci

test: # embedded nodes, and real servers where redis-server is installed
	go test ./...

race:
	go test -race ./...

integration: # as test, but fails where redis-server is missing
	REDQUORUM_REQUIRE_REDIS=1 go test -count=1 ./...

sim: # seeded schedules of faults, until stopped or for SIM=10m; -sim.seed=N repeats one that failed
	go test ./quorum -count=1 -timeout 0 -run 'TestSimulation$$' -v \
		-sim.seed=$$(date +%s) -sim.duration=$(or $(SIM),100000h)

soak: # real servers and connections, and everything that can befall them, until stopped or for SOAK=10m
	REDQUORUM_REQUIRE_REDIS=1 go test ./quorum -count=1 -timeout 0 -run 'TestRealSoak$$' -v \
		-soak.duration=$(or $(SOAK),100000h)

mutation: # break the protocol, rule by rule: does a test notice?
	go run ./internal/mutation

docker: # real masters in containers; builds their image
	.ci/docker

docker-soak: # as soak, of containers and what docker can do to them; wants the image, see docker/README.md
	REDQUORUM_REQUIRE_DOCKER=1 go -C docker test -count=1 -timeout 0 -run 'TestSoak$$' -v \
		-soak.duration=$(or $(SOAK),100000h)

fencing: # what a resource does with a token, against SQLite and PostgreSQL
	.ci/fencing

adapters: # what fits the library to others', each with the real one
	.ci/adapters

fuzz:
	.ci/fuzz 30s

bench:
	go test -run '^$$' -bench . ./...

bench-report: # beside other lock clients, on the same servers: a table, and bench/bench.html
	go -C bench run .

lint:
	"$$(.ci/tool golangci-lint)" run ./...
	.ci/imports

vuln:
	.ci/vuln

demo:
	go run ./cmd/redquorum demo

ci:
	.ci/run
