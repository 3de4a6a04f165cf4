// Package inputtest helps the tests of the inputs. It reads requests that real
// programs sent. It writes events as text to compare. It also reads the bill of real usage by which
// the tests of meters check sums (focus.go): from the same folder, shared/data.
package inputtest
