// Package embeddedtest gives tests real servers: one ClickHouse per test binary, started when the first test asks for
// it, and a NATS server of its own for each test. Tests are kept apart by a database of their own, so that they may
// all run in parallel.
//
// The engine is a child of the test binary itself, so that every package that uses it needs
//
//	func TestMain(m *testing.M) { embeddedtest.Main(m) }
//
// Where no ClickHouse can be found the test is skipped, unless ALMANAC_REQUIRE_ENGINE is set: then it fails. `make
// test` sets it, for a green run in which nothing ran would say nothing.
package embeddedtest
