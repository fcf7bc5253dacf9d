//go:build race

package handlercost

const raceDetector = true
