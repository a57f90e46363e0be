// The version of the library. The build reads it from here.
#pragma once

#define KVKEEP_VERSION_MAJOR 0
#define KVKEEP_VERSION_MINOR 1
#define KVKEEP_VERSION_PATCH 0
#define KVKEEP_VERSION "0.1.0"
