// Package inputtest helps the tests of the inputs. It reads requests that real
// programs sent. It writes events as text to compare.
package inputtest
