package rulefile

// nonBlock has no name in WebAssembly, and no meaning where there are no FIFOs.
const nonBlock = 0
