// Package buckettest is an object store with one bucket in the memory of a test. It checks signatures, and can be made to answer
// late, wrong, half or not at all. The test ends it. What cannot start fails the test.
package buckettest
