package rulefile

// nonBlock is 0, because WebAssembly has neither such a flag nor FIFOs.
const nonBlock = 0
