# cmake --install: the program, public headers, all static libraries in one export set, and find_package(millpond).
include(CMakePackageConfigHelpers)
set(package_dir ${CMAKE_INSTALL_LIBDIR}/cmake/millpond)

get_property(libraries GLOBAL PROPERTY MILLPOND_LIBRARIES)
install(TARGETS millpond ${libraries} EXPORT millpond-targets ARCHIVE DESTINATION ${CMAKE_INSTALL_LIBDIR}/millpond)
install(EXPORT millpond-targets NAMESPACE millpond:: DESTINATION ${package_dir})
if(EXISTS "${PROJECT_SOURCE_DIR}/include/millpond")
  install(DIRECTORY "${PROJECT_SOURCE_DIR}/include/millpond" DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}
          FILES_MATCHING PATTERN "*.h")
endif()

configure_package_config_file("${PROJECT_SOURCE_DIR}/cmake/millpond-config.cmake.in" "${PROJECT_BINARY_DIR}/millpond-config.cmake"
                              INSTALL_DESTINATION ${package_dir} NO_SET_AND_CHECK_MACRO)
write_basic_package_version_file("${PROJECT_BINARY_DIR}/millpond-config-version.cmake" COMPATIBILITY SameMinorVersion)
install(FILES "${PROJECT_BINARY_DIR}/millpond-config.cmake" "${PROJECT_BINARY_DIR}/millpond-config-version.cmake"
              cmake/MillpondPackages.cmake cmake/FindLIBXSMM.cmake cmake/FindHDF5Serial.cmake
        DESTINATION ${package_dir})
