# Databricks notebook source
# MAGIC %run ./columns
