# Configures, builds and runs the project in ${consumer} from nothing.

file(REMOVE_RECURSE ${build})
foreach(step
    "${CMAKE_COMMAND};-S;${consumer};-B;${build};-G;Ninja;-DCMAKE_BUILD_TYPE=Debug;-DCMAKE_CXX_FLAGS_DEBUG=-O0;-DKVKEEP_PRECOMPILE=ON;-DCMAKE_CXX_COMPILER=${compiler};-DCMAKE_PREFIX_PATH=${prefix};-DKVKEEP_SOURCE=${source}"
    "${CMAKE_COMMAND};--build;${build};--parallel;2"
    "${build}/consumer")
  execute_process(COMMAND ${step} COMMAND_ERROR_IS_FATAL ANY)
endforeach()
