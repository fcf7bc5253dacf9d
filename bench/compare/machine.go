package main

import (
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"runtime/debug"
	"slices"
	"strings"
	"time"
)

// machine describes the machine and the versions that were measured.
func machine(redisVersion string) []string {
	commit, _ := exec.Command("git", "describe", "--always", "--dirty").Output()
	return []string{
		fmt.Sprintf("%s, commit %s", time.Now().UTC().Format("2006-01-02 15:04 UTC"), strings.TrimSpace(string(commit))),
		fmt.Sprintf("%d cores%s, %s/%s", runtime.NumCPU(), processor(), runtime.GOOS, runtime.GOARCH),
		fmt.Sprintf("%s, redis-server %s on loopback TCP, without persistence", runtime.Version(), redisVersion),
		rivalVersions(),
	}
}

// processor returns the model that Linux names, or nothing.
func processor() string {
	info, _ := os.ReadFile("/proc/cpuinfo")
	_, rest, found := strings.Cut(string(info), "\nmodel name\t: ")
	name, _, _ := strings.Cut(rest, "\n")
	if !found {
		return ""
	}
	return " (" + name + ")"
}

// rivalModules are the modules whose versions matter.
var rivalModules = []string{
	"redis/go-redis/v9", "go-redis/redis_rate/v10", "ulule/limiter/v3", "throttled/throttled/v2", "redis/rueidis",
	"sethvargo/go-limiter", "go-chi/httprate", "didip/tollbooth/v8", "maypok86/otter/v2", "gin-gonic/gin", "labstack/echo/v4", "gofiber/fiber/v2",
	"labstack/echo/v5", "gofiber/fiber/v3",
}

func rivalVersions() string {
	var versions []string
	if build, ok := debug.ReadBuildInfo(); ok {
		for _, dep := range build.Deps {
			if module := strings.TrimPrefix(dep.Path, "github.com/"); slices.Contains(rivalModules, module) {
				versions = append(versions, module+" "+dep.Version)
			}
		}
	}
	return "versions: " + strings.Join(versions, ", ")
}
