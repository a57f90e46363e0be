# kvkeep::kvkeep, the one library that users link: the objects of every folder of src/ but testing, and
# its installation (find_package, pkg-config).

include(GNUInstallDirs)
include(CMakePackageConfigHelpers)

get_property(folders GLOBAL PROPERTY KVKEEP_FOLDERS)
list(REMOVE_ITEM folders testing)
list(TRANSFORM folders REPLACE "(.+)" "$<TARGET_OBJECTS:kvkeep_\\1>" OUTPUT_VARIABLE objects)
add_library(kvkeep STATIC ${objects})
add_library(kvkeep::kvkeep ALIAS kvkeep)
set_target_properties(kvkeep PROPERTIES LINKER_LANGUAGE CXX)
target_compile_features(kvkeep PUBLIC cxx_std_20)
target_include_directories(kvkeep PUBLIC
  $<BUILD_INTERFACE:${PROJECT_SOURCE_DIR}/include> $<INSTALL_INTERFACE:${CMAKE_INSTALL_INCLUDEDIR}>)
target_link_libraries(kvkeep PUBLIC
  Threads::Threads OpenSSL::Crypto simdjson::simdjson PkgConfig::xxhash)
if(KVKEEP_SANITIZE)
  target_link_options(kvkeep PUBLIC $<BUILD_INTERFACE:-fsanitize=${KVKEEP_SANITIZE}>)
endif()

# A wheel brings the Python module and the program only.
if(NOT PROJECT_IS_TOP_LEVEL OR DEFINED SKBUILD)
  return()
endif()

set(package_dir ${CMAKE_INSTALL_LIBDIR}/cmake/kvkeep)
configure_package_config_file(cmake/kvkeepConfig.cmake.in kvkeepConfig.cmake
  INSTALL_DESTINATION ${package_dir})
write_basic_package_version_file(kvkeepConfigVersion.cmake COMPATIBILITY SameMinorVersion)
file(RELATIVE_PATH prefix_from_pc /${CMAKE_INSTALL_LIBDIR}/pkgconfig /)
# A C program links with the C compiler, which does not know of C++'s libraries.
set(cxx_libraries ${CMAKE_CXX_IMPLICIT_LINK_LIBRARIES})
list(FILTER cxx_libraries INCLUDE REGEX "^(stdc\\+\\+|c\\+\\+|m)$")
list(TRANSFORM cxx_libraries PREPEND "-l")
list(JOIN cxx_libraries " " cxx_libraries)
configure_file(cmake/kvkeep.pc.in kvkeep.pc @ONLY)

install(TARGETS kvkeep EXPORT kvkeepTargets ARCHIVE DESTINATION ${CMAKE_INSTALL_LIBDIR})
install(EXPORT kvkeepTargets NAMESPACE kvkeep:: DESTINATION ${package_dir})
install(FILES ${CMAKE_CURRENT_BINARY_DIR}/kvkeepConfig.cmake
  ${CMAKE_CURRENT_BINARY_DIR}/kvkeepConfigVersion.cmake DESTINATION ${package_dir})
install(FILES ${CMAKE_CURRENT_BINARY_DIR}/kvkeep.pc DESTINATION ${CMAKE_INSTALL_LIBDIR}/pkgconfig)
install(DIRECTORY include/kvkeep DESTINATION ${CMAKE_INSTALL_INCLUDEDIR} FILES_MATCHING PATTERN "*.h")
