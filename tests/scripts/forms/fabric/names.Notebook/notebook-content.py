# Fabric notebook source

# CELL ********************

CHECKPOINTS = "Files/harbour/checkpoints"
