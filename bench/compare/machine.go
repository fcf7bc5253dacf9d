package main

import (
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"runtime/debug"
	"strings"
	"time"
)

// machine describes the machine and the versions that the figures are of.
func machine(redisVersion string) []string {
	lines := []string{
		fmt.Sprintf("%s, commit %s", time.Now().UTC().Format("2006-01-02 15:04 UTC"), commit()),
		fmt.Sprintf("%d cores%s, %s/%s", runtime.NumCPU(), processor(), runtime.GOOS, runtime.GOARCH),
		fmt.Sprintf("%s, redis-server %s on loopback TCP, without persistence", runtime.Version(), redisVersion),
	}
	if versions := rivalVersions(); versions != "" {
		lines = append(lines, versions)
	}
	return lines
}

// processor returns the model that Linux names, or nothing.
func processor() string {
	info, _ := os.ReadFile("/proc/cpuinfo")
	for line := range strings.Lines(string(info)) {
		if name, value, found := strings.Cut(line, ":"); found && strings.TrimSpace(name) == "model name" {
			return " (" + strings.TrimSpace(value) + ")"
		}
	}
	return ""
}

func commit() string {
	out, err := exec.Command("git", "describe", "--always", "--dirty").Output()
	if err != nil {
		return "unknown"
	}
	return strings.TrimSpace(string(out))
}

// rivalModules are the modules whose versions matter.
var rivalModules = []string{
	"redis/go-redis/v9", "go-redis/redis_rate/v10", "ulule/limiter/v3", "throttled/throttled/v2", "redis/rueidis",
	"sethvargo/go-limiter", "go-chi/httprate", "didip/tollbooth/v8", "gin-gonic/gin", "labstack/echo/v4", "gofiber/fiber/v2",
}

func rivalVersions() string {
	build, ok := debug.ReadBuildInfo()
	if !ok {
		return ""
	}
	var parts []string
	for _, module := range rivalModules {
		for _, dep := range build.Deps {
			if dep.Path == "github.com/"+module {
				parts = append(parts, module+" "+dep.Version)
			}
		}
	}
	return strings.Join(parts, ", ")
}
