package ginlimit_test

import (
	"testing"

	"github.com/gin-gonic/gin"

	"github.com/accesslimit/accesslimit/core/limittest"
)

// FuzzPaths tries paths on gin's router as it is, and as its options make it route by other forms
// of the path.
func FuzzPaths(f *testing.F) {
	gin.SetMode(gin.TestMode)
	limittest.FuzzPaths(f,
		limittest.Adapter{Serve: serve(func(*gin.Engine) {})},
		limittest.Adapter{Serve: serve(func(e *gin.Engine) { e.UseRawPath = true })},
		limittest.Adapter{Serve: serve(func(e *gin.Engine) { e.UseRawPath, e.UnescapePathValues = true, false })},
		limittest.Adapter{Serve: serve(func(e *gin.Engine) { e.RemoveExtraSlash = true })},
		limittest.Adapter{Serve: serve(func(e *gin.Engine) { e.UseRawPath, e.RemoveExtraSlash = true, true })},
		limittest.Adapter{Serve: serve(func(e *gin.Engine) { e.RedirectFixedPath, e.HandleMethodNotAllowed = true, true })},
	)
}
